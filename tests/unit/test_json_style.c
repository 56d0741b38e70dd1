#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/json_style.h"
#include "suites.h"

#define COMPACT NULL, "", ""
#define INDENTED "  ", " ", ""

static const struct {
        struct json_style style;
        const char *from;
        const char *to;
} styles[] = {
    {{COMPACT, 0, 0}, " { \"a b\" : [ 1 ,\r\n\t2.50e1 ] , \"c\" : { } } \n", "{\"a b\":[1,2.50e1],\"c\":{}}"},
    {{COMPACT, 0, 0}, "[\" \\\" : , \"]", "[\" \\\" : , \"]"},
    {{NULL, " ", " ", 0, 0}, "{\"a\":[1,true],\"b\":null}", "{\"a\": [1, true], \"b\": null}"},
    {{INDENTED, 0, 0}, "{\"a\":[1,{}],\"b\":[ ]}", "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"},
    {{COMPACT, 1, 0}, "\"a/b\\/c\\\\/\"", "\"a\\/b\\/c\\\\\\/\""},
    {{COMPACT, 0, 0}, "\"a\\/b/c\\\\/\\n\\u0001\"", "\"a/b/c\\\\/\\n\\u0001\""},
    {{COMPACT, 0, 1}, "\"\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\\u00df\\u20ac\\ud83d\\ude00\""},
    {{COMPACT, 0, 0},
     "\"\\u00df\\u20AC\\ud83d\\ude00\\u0041\"",
     "\"\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80"
     "A\""},
};

START_TEST(test_json_is_written_in_the_requested_style)
{
        struct error error;
        struct json_value *value = json_tree_parse(styles[_i].from, strlen(styles[_i].from), &error);
        size_t len;
        char *text;

        ck_assert_ptr_nonnull(value);
        text = json_style_write(value, &styles[_i].style, &len);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_eq(len, strlen(styles[_i].to));
        ck_assert_mem_eq(text, styles[_i].to, len);
        free(text);
        json_tree_free(value);
}
END_TEST

Suite *
suite_json_style(void)
{
        Suite *suite = suite_create("json_style");
        TCase *tcase = tcase_create("json_style");

        tcase_add_loop_test(tcase, test_json_is_written_in_the_requested_style, 0, ARRAY_LEN(styles));
        suite_add_tcase(suite, tcase);
        return suite;
}
