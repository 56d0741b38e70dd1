#include <check.h>
#include <string.h>

#include "base/json_reader.h"
#include "suites.h"

static int
ignore_value(void *arg, enum json_type type, const char *text, size_t len)
{
        (void)arg;
        (void)type;
        (void)text;
        (void)len;
        return 0;
}

static int
ignore_name(void *arg, const char *text, size_t len)
{
        (void)arg;
        (void)text;
        (void)len;
        return 0;
}

static int
ignore_end(void *arg, enum json_type type)
{
        (void)arg;
        (void)type;
        return 0;
}

static const struct json_events ignore = {ignore_value, ignore_name, ignore_end};

START_TEST(test_string_longer_than_the_first_buffer_is_read)
{
        static char text[10000] = "{\"a\":[\"\\n\\ud800";
        struct error error;

        memset(text + strlen(text), 'x', 9000);
        memcpy(text + strlen(text), "\"]}", 3);
        ck_assert_int_eq(json_read(text, strlen(text), 8, &ignore, NULL, &error), 0);
        ck_assert_int_eq(json_read(text, strlen(text) - 3, 8, &ignore, NULL, &error), -1);
}
END_TEST

START_TEST(test_depth_is_limited)
{
        struct error error;

        ck_assert_int_eq(json_read("[[{\"a\":0}]]", 11, 3, &ignore, NULL, &error), 0);
        ck_assert_int_eq(json_read("[[{\"a\":0}]]", 11, 2, &ignore, NULL, &error), -1);
        ck_assert_str_eq(error.text, "the text is nested more than 2 levels deep");
}
END_TEST

Suite *
suite_json_reader(void)
{
        Suite *suite = suite_create("json_reader");
        TCase *tcase = tcase_create("json_reader");

        tcase_add_test(tcase, test_string_longer_than_the_first_buffer_is_read);
        tcase_add_test(tcase, test_depth_is_limited);
        suite_add_tcase(suite, tcase);
        return suite;
}
