#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "scratch.h"
#include "suites.h"

START_TEST(test_hex_round_trip_preserves_bytes)
{
        uint8_t bytes[256], back[256];
        char text[513];

        for (int i = 0; i < 256; i++)
                bytes[i] = (uint8_t)i;
        bytes_to_hex(bytes, sizeof(bytes), text);
        ck_assert_int_eq((int)strlen(text), 512);
        ck_assert_int_eq(bytes_from_hex(text, back, sizeof(back)), 0);
        ck_assert_mem_eq(bytes, back, sizeof(bytes));
}
END_TEST

START_TEST(test_upper_case_hex_is_refused)
{
        uint8_t byte;

        ck_assert_int_eq(bytes_from_hex("ab", &byte, 1), 0);
        ck_assert_int_eq(bytes_from_hex("aB", &byte, 1), -1);
        ck_assert_int_eq(bytes_from_hex("Ab", &byte, 1), -1);
        ck_assert_int_eq(bytes_from_hex("g0", &byte, 1), -1);
}
END_TEST

START_TEST(test_times_are_formatted_as_rfc_3339)
{
        char text[CLOCK_RFC3339_SIZE];

        ck_assert_str_eq(clock_format_s(0, text), "1970-01-01T00:00:00Z");
        ck_assert_str_eq(clock_format_s(1795229045, text), "2026-11-21T02:44:05Z");
        ck_assert_str_eq(clock_format_ms(1795229045678, text), "2026-11-21T02:44:05.678Z");
        ck_assert_str_eq(clock_format_ms(-1, text), "1969-12-31T23:59:59.999Z");
        ck_assert_str_eq(clock_format_s(INT64_MAX, text), "9999-12-31T23:59:59Z");
}
END_TEST

static const struct {
        const char *text;
        int is_utc;
} timestamps[] = {
    {"2026-11-21T03:04:05Z", 1},
    {"2026-11-21T03:04:05.5Z", 1},
    {"2026-11-21T03:04:05+00:00", 1},
    {"2026-11-21T23:59:60Z", 1},
    {"2024-02-29T00:00:00Z", 1},
    {"2026-02-29T00:00:00Z", 0},
    {"2026-13-01T00:00:00Z", 0},
    {"2026-11-21T24:00:00Z", 0},
    {"2026-11-21T03:60:05Z", 0},
    {"2026-11-21T03:04:61Z", 0},
    {"2026-11-21T03:04:05", 0},
    {"2026-11-21T03:04:05.Z", 0},
    {"2026-11-21T03:04:05+01:00", 0},
    {"2026-11-21T03:04:05-00:00", 0},
    {"2026-11-21 03:04:05Z", 0},
    {"21.11.2026", 0},
    {"", 0},
    {"2026-11-21T03:04:05Zx", 0},
    {"2026-11-21T03:04:05.123456789Z", 1},
    {"1900-02-29T00:00:00Z", 0},
};

START_TEST(test_times_beyond_four_digit_years_are_clamped)
{
        char text[CLOCK_RFC3339_SIZE];

        ck_assert_str_eq(clock_format_s(INT64_MAX, text), "9999-12-31T23:59:59Z");
        ck_assert_str_eq(clock_format_s(INT64_MIN, text), "0000-01-01T00:00:00Z");
}
END_TEST

START_TEST(test_utc_timestamps_are_recognised)
{
        ck_assert_int_eq(clock_is_utc_timestamp(timestamps[_i].text, strlen(timestamps[_i].text)),
                         timestamps[_i].is_utc);
}
END_TEST

START_TEST(test_timestamps_are_parsed_to_the_millisecond)
{
        static const struct {
                const char *text;
                int64_t ms;
        } times[] = {
            {"1970-01-01T00:00:00Z", 0},
            {"2026-11-21T03:04:05Z", INT64_C(1795230245000)},
            {"2026-11-21T03:04:05.6789Z", INT64_C(1795230245678)},
            {"2026-11-21T03:04:05.5+00:00", INT64_C(1795230245500)},
            {"1969-12-31T23:59:59.999Z", -1},
        };
        int64_t ms;

        for (size_t i = 0; i < ARRAY_LEN(times); i++) {
                ck_assert_int_eq(clock_parse_ms(times[i].text, strlen(times[i].text), &ms), 0);
                ck_assert_int_eq(ms, times[i].ms);
        }
        ck_assert_int_eq(clock_parse_ms("2026-11-21T03:04:05", 19, &ms), -1);
        ck_assert_int_eq(clock_parse_ms("2026-11-31T03:04:05Z", 20, &ms), -1);
}
END_TEST

static const struct {
        const char *bytes;
        size_t len;
        int valid;
} texts[] = {
    {"", 0, 1},
    {"plain text, longer than a word", 30, 1},
    {"a\0b", 3, 1},
    {"za\xc5\xbc\xc3\xb3\xc5\x82\xc4\x87", 10, 1},
    {"\xf0\x9f\xa7\xbe", 4, 1},
    {"\xf4\x8f\xbf\xbf", 4, 1},
    {"\xed\x9f\xbf", 3, 1},
    {"\xee\x80\x80", 3, 1},
    {"\xc0\xaf", 2, 0},         /* overlong */
    {"\xe0\x80\xaf", 3, 0},     /* overlong */
    {"\xf0\x80\x80\xaf", 4, 0}, /* overlong */
    {"\xed\xa0\x80", 3, 0},     /* surrogate */
    {"\xf4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
    {"\xf5\x80\x80\x80", 4, 0}, /* never a first byte */
    {"\x80", 1, 0},             /* continuation alone */
    {"\xc3", 1, 0},             /* cut off */
    {"\xe2\x82", 2, 0},         /* cut off */
    {"12345678\xff", 9, 0},     /* after eight bytes */
    {"\xe2\x28\xa1", 3, 0},     /* bad continuation */
};

START_TEST(test_utf8_is_validated_by_rfc_3629)
{
        ck_assert_int_eq(text_is_utf8(texts[_i].bytes, texts[_i].len), texts[_i].valid);
}
END_TEST

START_TEST(test_closest_name_is_found)
{
        static const char *const names[] = {"tolerance", "secret_file", "path", "key", "kind"};

        ck_assert_str_eq(text_closest("tolerence", names, 5), "tolerance");
        ck_assert_str_eq(text_closest("secretfile", names, 5), "secret_file");
        ck_assert_str_eq(text_closest("paht", names, 5), "path");
        ck_assert_ptr_null(text_closest("listen", names, 5));
        ck_assert_ptr_null(text_closest("ab", names, 5));
}
END_TEST

START_TEST(test_error_text_can_be_prefixed)
{
        struct error error;

        ck_assert_int_eq(error_set(&error, "no %s", "room"), -1);
        ck_assert_int_eq(error_prefix(&error, "topic %d", 7), -1);
        ck_assert_str_eq(error.text, "topic 7: no room");
}
END_TEST

START_TEST(test_root_becomes_another_user_with_its_groups)
{
        const struct passwd *user = getpwnam("nobody");
        struct error error;
        gid_t group;

        if (user == NULL)
                return;
        if (geteuid() != 0) {
                ck_assert_int_eq(account_become("nobody", &error), -1);
                ck_assert_str_eq(error.text, "only root can become user nobody");
                return;
        }
        ck_assert_int_eq(account_become("root", &error), 0);
        ck_assert_int_eq(account_become("nobody", &error), 1);
        ck_assert_uint_eq(getuid(), user->pw_uid);
        ck_assert_uint_eq(getegid(), user->pw_gid);
        ck_assert_int_eq(getgroups(1, &group), 1);
        ck_assert_uint_eq(group, user->pw_gid);
        ck_assert_int_eq(account_become(NULL, &error), 0);
        ck_assert_int_ne(setuid(0), 0);
}
END_TEST

START_TEST(test_user_that_does_not_exist_is_an_error)
{
        struct error error;

        ck_assert_int_eq(account_become("no-such-user", &error), -1);
        ck_assert_str_eq(error.text, "there is no user no-such-user");
}
END_TEST

Suite *
suite_base(void)
{
        Suite *suite = suite_create("base");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_hex_round_trip_preserves_bytes);
        tcase_add_test(all, test_upper_case_hex_is_refused);
        tcase_add_test(all, test_times_are_formatted_as_rfc_3339);
        tcase_add_test(all, test_times_beyond_four_digit_years_are_clamped);
        tcase_add_test(all, test_timestamps_are_parsed_to_the_millisecond);
        tcase_add_loop_test(all, test_utc_timestamps_are_recognised, 0,
                            (int)(sizeof(timestamps) / sizeof(timestamps[0])));
        tcase_add_loop_test(all, test_utf8_is_validated_by_rfc_3629, 0,
                            (int)(sizeof(texts) / sizeof(texts[0])));
        tcase_add_test(all, test_closest_name_is_found);
        tcase_add_test(all, test_error_text_can_be_prefixed);
        tcase_add_test(all, test_root_becomes_another_user_with_its_groups);
        tcase_add_test(all, test_user_that_does_not_exist_is_an_error);
        suite_add_tcase(suite, all);
        return suite;
}
