#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "suites.h"

/* Write an object with one member of this text with json_write(). The caller frees the result. */
static char *
write_member(const char *name, const char *value)
{
        struct json_writer *json = json_new(0);
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        json_open_object(json, NULL);
        json_bytes(json, name, value, strlen(value));
        json_close_object(json);
        json_write(json, out);
        (void)fclose(out);
        return text;
}

static const struct {
        const char *name, *value, *written;
} members[] = {
    {"name", "na\xc3\xafve \xe2\x98\x83", "{\"name\":\"na\xc3\xafve \xe2\x98\x83\"}\n"},
    {"name", "\x1b[31m\n", "{\"name\":\"\\u001B[31m\\n\"}\n"},
    {"name",
     "\xc2\x9b"
     "31m\x7f",
     "{\"name\":\"\\u009b31m\\u007f\"}\n"},
    {"name", "\xc2\xa0", "{\"name\":\"\xc2\xa0\"}\n"},
    {"name",
     "\x9b"
     "31m",
     "{\"nameBase64\":\"mzMxbQ==\"}\n"},
    {"\xc2\x9b", "a", "{\"\\u009b\":\"a\"}\n"},
    {"a\x9b\xff", "a", "{\"a\xef\xbf\xbd\xef\xbf\xbd\":\"a\"}\n"},
    {"a\x9b", "\x9b",
     "{\"a\xef\xbf\xbd"
     "Base64\":\"mw==\"}\n"},
};

START_TEST(test_control_characters_are_escaped)
{
        char *text = write_member(members[_i].name, members[_i].value);

        ck_assert_str_eq(text, members[_i].written);
        free(text);
}
END_TEST

START_TEST(test_long_document_is_written)
{
        struct json_writer *json = json_new(0);
        char *text;
        size_t len;

        json_open_array(json, NULL);
        for (int i = 0; i < 10000; i++)
                json_number(json, NULL, 1);
        json_close_array(json);
        text = json_take(json, &len);
        ck_assert_uint_eq(len, 20001);
        ck_assert_uint_eq(strlen(text), len);
        ck_assert_str_eq(text + len - 3, ",1]");
        free(text);
}
END_TEST

static const struct {
        const char *text;
        size_t len;
} chars[] = {
    {"a", 1},
    {" ", 1},
    {"~", 1},
    {"\xc2\xa0", 2},
    {"\xc3\xaf", 2},
    {"\xe2\x98\x83", 3},
    {"\x7f", 0},
    {"\x1b", 0},
    {"\n", 0},
    {"\xc2\x80", 0},
    {"\xf0\x9f\x98\x80", 4},
    {"\xc2\x9b", 0},
    {"\xc2\x9f", 0},
    {"\x9b[31m", 0},
    {"\xff", 0},
    {"\xc2\xad", 0},         /* soft hyphen */
    {"\xd8\x9c", 0},         /* Arabic letter mark */
    {"\xe2\x80\x8b", 0},     /* zero-width space */
    {"\xe2\x80\xae", 0},     /* right-to-left override */
    {"\xe2\x80\xa8", 0},     /* line separator */
    {"\xe2\x81\xa6", 0},     /* left-to-right isolate */
    {"\xef\xbb\xbf", 0},     /* byte order mark */
    {"\xf3\xa0\x81\xa1", 0}, /* tag */
    {"\xd7\x90", 2},         /* Hebrew alef */
    {"\xe2\x82\xac", 3},     /* euro */
    {"\xc2", 0},
    {"\xe2\x98", 0},
    {"\xf5\x80\x80\x80", 0},
    {"\xc0\xaf", 0},
    {"\xc3(", 0},
};

START_TEST(test_printable_characters_are_recognised)
{
        ck_assert_uint_eq(text_printable(chars[_i].text, strlen(chars[_i].text)), chars[_i].len);
}
END_TEST

Suite *
suite_json(void)
{
        Suite *suite = suite_create("json");
        TCase *tcase = tcase_create("json");

        tcase_add_loop_test(tcase, test_control_characters_are_escaped, 0,
                            (int)(sizeof(members) / sizeof(*members)));
        tcase_add_test(tcase, test_long_document_is_written);
        tcase_add_loop_test(tcase, test_printable_characters_are_recognised, 0,
                            (int)(sizeof(chars) / sizeof(*chars)));
        suite_add_tcase(suite, tcase);
        return suite;
}
