#include <string.h>

#include "base/compiler.h"
#include "base/number.h"
#include "suites.h"

START_TEST(test_sizes_are_parsed_with_units)
{
        struct error error;
        uint64_t bytes;

        ck_assert_int_eq(number_parse_size("1MiB", 0, UINT64_MAX, &bytes, &error), 0);
        ck_assert_uint_eq(bytes, 1048576);
        ck_assert_int_eq(number_parse_size("17B", 0, UINT64_MAX, &bytes, &error), 0);
        ck_assert_uint_eq(bytes, 17);
}
END_TEST

START_TEST(test_durations_are_parsed_with_units)
{
        struct error error;
        uint64_t ms;

        ck_assert_int_eq(number_parse_duration("3d", 0, UINT64_MAX, &ms, &error), 0);
        ck_assert_uint_eq(ms, UINT64_C(259200000));
        ck_assert_int_eq(number_parse_duration("250ms", 0, UINT64_MAX, &ms, &error), 0);
        ck_assert_uint_eq(ms, 250);
        ck_assert_int_eq(number_parse_duration("2min", 0, UINT64_MAX, &ms, &error), 0);
        ck_assert_uint_eq(ms, 120000);
}
END_TEST

START_TEST(test_invalid_duration_is_refused_with_an_example)
{
        static const struct {
                const char *text;
                const char *reason;
        } wrong[] = {{"300", "needs a unit"},
                     {"5m", "units are ms, s, min, h, d"},
                     {"5w", "units are ms, s, min, h, d"},
                     {"5 Seconds", "did you mean 5s?"},
                     {"", "such as 30s"},
                     {"-5s", "such as 30s"},
                     {"1.5s", "is not a unit"},
                     {"s", "such as 30s"},
                     {"99d", "is not between"},
                     {"99999999999999999999s", "such as 30s"}};
        struct error error;
        uint64_t ms;

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                ck_assert_int_eq(number_parse_duration(wrong[i].text, 1000, 86400000, &ms, &error), -1);
                ck_assert_msg(strstr(error.text, wrong[i].reason) != NULL, "%s: %s", wrong[i].text,
                              error.text);
        }
}
END_TEST

START_TEST(test_number_out_of_range_is_refused)
{
        struct error error;
        uint64_t n;

        ck_assert_int_eq(number_parse("64", 1, 64, &n, &error), 0);
        ck_assert_int_eq(number_parse("65", 1, 64, &n, &error), -1);
        ck_assert_str_eq(error.text, "65 is not between 1 and 64");
        ck_assert_int_eq(number_parse("0", 1, 64, &n, &error), -1);
        ck_assert_int_eq(number_parse("1x", 1, 64, &n, &error), -1);
        ck_assert_int_eq(number_parse("18446744073709551616", 0, UINT64_MAX, &n, &error), -1);
}
END_TEST

START_TEST(test_durations_are_formatted_with_the_largest_unit)
{
        char text[NUMBER_TEXT_SIZE];

        ck_assert_str_eq(number_format_duration(90000, text), "90s");
        ck_assert_str_eq(number_format_duration(259200000, text), "3d");
        ck_assert_str_eq(number_format_duration(0, text), "0ms");
}
END_TEST

Suite *
suite_number(void)
{
        Suite *suite = suite_create("number");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_sizes_are_parsed_with_units);
        tcase_add_test(all, test_durations_are_parsed_with_units);
        tcase_add_test(all, test_invalid_duration_is_refused_with_an_example);
        tcase_add_test(all, test_number_out_of_range_is_refused);
        tcase_add_test(all, test_durations_are_formatted_with_the_largest_unit);
        suite_add_tcase(suite, all);
        return suite;
}
