#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bodies.h"
#include "suites.h"

/* Well-formed bodies: UTF-8 by RFC 3629, JSON by RFC 8259, an object, 64 levels. */

static const char *const values[] = {
    "0",
    "-0",
    "10",
    "-1.5",
    "0.0",
    "1e5",
    "1E-5",
    "1.5e+5",
    "true",
    "false",
    "null",
    "\"\"",
    "[]",
    "{}",
    "[[],[1],{}]",
    "{\"\":[0,1]}",
    "\"\x7f\"",
    "\"\\/\"",
    " 1 ",
    "\t1\r",
    "\n1",
    "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\"",
    "\"\xc2\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf\"",
};

START_TEST(test_valid_json_is_accepted)
{
        char body[128];

        (void)snprintf(body, sizeof(body), "{\"event\":\"x\",\"v\":%s}", values[_i]);
        ck_assert_msg(decode_text(body) == DECODE_OK, "%s: %s", body, decoded.detail);
        assert_span(decoded.kind, "x");
}
END_TEST

static const char *const no_values[] = {
    "",
    " ",
    ",",
    "[1,]",
    "[,1]",
    "[,]",
    "[1,,2]",
    "[1 2]",
    "{\"a\":1,}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\" 1}",
    "{\"a\"::1}",
    "{a:1}",
    "{1:1}",
    "{'a':1}",
    "{null:1}",
    "[1}",
    "{\"a\":1]",
    "1:2",
    "01",
    "-01",
    "00",
    "+1",
    "--1",
    ".5",
    "-.5",
    "1.",
    "1.e5",
    "1e",
    "1e+",
    "1e1.5",
    "0x10",
    "1_000",
    "-",
    "- 1",
    "NaN",
    "-NaN",
    "Infinity",
    "-Infinity",
    "nul",
    "nulll",
    "Null",
    "TRUE",
    "tru e",
    "truefalse",
    "undefined",
    "abc",
    "'a'",
    "/**/1",
    "1/**/",
    "//\n1",
    "1//\n",
    "#\n1",
    "\"a",
    "\"\\\"",
    "\"\\x41\"",
    "\"\\a\"",
    "\"\\'\"",
    "\"\\0\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\u\"",
    "\"\\U0041\"",
    "\"\\ \"",
    "\"a\tb\"",
    "\"a\nb\"",
    "\"a\rb\"",
    "\"a\x01\"",
    "\"a\x1f\"",
    "\"\v\"",
    "\"\f\"",
    "\v1",
    "1\v",
    "\f1",
    "1\f",
    "\x01",
    "\xc2\xa0"
    "1",
    "\xe2\x80\xa8"
    "1",
    "\xef\xbb\xbf"
    "1",
};

START_TEST(test_invalid_json_is_malformed)
{
        char body[128];

        (void)snprintf(body, sizeof(body), "{\"event\":\"x\",\"v\":%s}", no_values[_i]);
        ck_assert_msg(decode_text(body) == DECODE_MALFORMED_JSON, "%s", body);
        ck_assert_str_ne(decoded.detail, "");
        ck_assert_ptr_null(strchr(decoded.detail, '\n'));
}
END_TEST

static const struct span no_bodies[] = {
    SPAN_OF(" "),
    SPAN_OF("\n"),
    SPAN_OF("{"),
    SPAN_OF("}"),
    SPAN_OF("{\"event\":\"x\""),
    SPAN_OF("{\"event\":\"x\"}}"),
    SPAN_OF("{\"event\":\"x\"}{}"),
    SPAN_OF("{\"event\":\"x\"} 1"),
    SPAN_OF("{\"event\":\"x\"},"),
    SPAN_OF("{\"event\":\"x\"}x"),
    SPAN_OF("{\"event\":\"x\"}-"),
    SPAN_OF("{\"event\":\"x\"}\""),
    SPAN_OF("{\"event\":\"x\"}\"}"),
    SPAN_OF("{\"event\":\"x\"}\"a\""),
    SPAN_OF("{\"event\":\"x\"}\n\"{}"),
    SPAN_OF("{\"event\":\"x\"}tru"),
    SPAN_OF("{\"event\":\"x\"}//"),
    SPAN_OF("{\"event\":\"x\"}\0"),
    SPAN_OF("{\"event\":\"x\"}\v"),
    SPAN_OF("{\"event\":\"x\"}\xc2\xa0"),
    SPAN_OF("\0{\"event\":\"x\"}"),
    SPAN_OF("\f{\"event\":\"x\"}"),
    SPAN_OF("{\"event\":\"x\0\"}"),
    SPAN_OF("{\"event\":\"x\",\0\"a\":1}"),
    SPAN_OF("{\"event\0\":\"x\"}"),
    SPAN_OF("\xef\xbb\xbf{\"event\":\"x\"}"),
    SPAN_OF("\xff\xfe{\0}\0"),
    SPAN_OF("event=x"),
    SPAN_OF("<event>x</event>"),
};

START_TEST(test_body_other_than_a_single_json_text_is_malformed)
{
        ck_assert_msg(decode(no_bodies[_i]) == DECODE_MALFORMED_JSON, "%s", no_bodies[_i].data);
        ck_assert_str_ne(decoded.detail, "");
}
END_TEST

START_TEST(test_white_space_around_the_body_is_accepted)
{
        ck_assert_int_eq(decode_text(" \t\r\n{\r\n\t\"event\" : \"x\" } \t\r\n"), DECODE_OK);
        assert_span(decoded.kind, "x");
}
END_TEST

START_TEST(test_empty_body_is_malformed)
{
        ck_assert_int_eq(decode(SPAN("")), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "empty"));
}
END_TEST

static const char *const no_objects[] = {"null", "1", "true", "\"event\"", "[]", "[{\"event\":\"x\"}]",
                                         " []"};

START_TEST(test_body_other_than_an_object_is_malformed)
{
        ck_assert_int_eq(decode_text(no_objects[_i]), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "object"));
}
END_TEST

static const char *const no_utf8[] = {
    "\x80",         "\xc0\xaf",         "\xc1\xbf",         "\xc3",         "\xc3(",
    "\xe0\x80\xaf", "\xe2\x82",         "\xed\xa0\x80",     "\xed\xbf\xbf", "\xf0\x80\x80\xaf",
    "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe",         "\xff",
    "\xc3\xa4\xa4",
};

START_TEST(test_body_that_is_not_utf8_is_malformed)
{
        char body[64];

        (void)snprintf(body, sizeof(body), "{\"event\":\"x\",\"v\":\"%s\"}", no_utf8[_i]);
        ck_assert_int_eq(decode_text(body), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "UTF-8"));
        (void)snprintf(body, sizeof(body), "{\"event\":\"x\",\"%s\":1}", no_utf8[_i]);
        ck_assert_int_eq(decode_text(body), DECODE_MALFORMED_JSON);
        (void)snprintf(body, sizeof(body), "{\"event\":\"x\"}%s", no_utf8[_i]);
        ck_assert_int_eq(decode_text(body), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "UTF-8"));
}
END_TEST

/*
 * A body of n levels: the outer object, and n - 1 levels of one type inside it. The kind is its last member.
 */
static enum decode_result
decode_levels(size_t n, const char *opening, const char *closing)
{
        char body[4096] = "{\"v\":";

        for (size_t i = 1; i < n; i++)
                strcat(body, opening);
        strcat(body, "0");
        for (size_t i = 1; i < n; i++)
                strcat(body, closing);
        strcat(body, ",\"event\":\"x\"}");
        return decode_text(body);
}

START_TEST(test_64_levels_are_accepted_and_65_refused)
{
        static const char *const openings[] = {"[", "{\"v\":", "[{\"v\":"};
        static const char *const closings[] = {"]", "}", "}]"};
        /* The third opens two levels at a time: 1 + 2 * 31 and 1 + 2 * 32 are 63 and 65. */
        size_t deepest = _i < 2 ? 64 : 32;

        ck_assert_int_eq(decode_levels(deepest, openings[_i], closings[_i]), DECODE_OK);
        assert_span(decoded.kind, "x");
        ck_assert_int_eq(decode_levels(deepest + 1, openings[_i], closings[_i]), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "64 levels"));
}
END_TEST

START_TEST(test_closed_levels_do_not_count)
{
        char body[4096] = "{\"v\":[";

        for (int i = 0; i < 500; i++)
                strcat(body, "[[]],");
        strcat(body, "0],\"event\":\"x\"}");
        ck_assert_int_eq(decode_text(body), DECODE_OK);
}
END_TEST

START_TEST(test_a_million_levels_are_refused)
{
        size_t len = 1000000;
        char *body = malloc(len + 1);

        ck_assert_ptr_nonnull(body);
        memset(body, '[', len);
        body[len] = '\0';
        memcpy(body, "{\"v\":", 5);
        ck_assert_int_eq(decode_text(body), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "64 levels"));
        free(body);
}
END_TEST

START_TEST(test_error_gives_the_byte_position)
{
        ck_assert_int_eq(decode_text("{\"event\":\"x\",\"a\":flase}"), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "near byte 18"));
        ck_assert_int_eq(decode_text("{\"event\":\"x\",\"a\":"), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "near byte 17"));
}
END_TEST

Suite *
suite_decode_json(void)
{
        Suite *suite = suite_create("decode_json");
        TCase *tcase = tcase_create("decode_json");

        tcase_add_checked_fixture(tcase, set_up_decoder, tear_down_decoder);
        tcase_add_loop_test(tcase, test_valid_json_is_accepted, 0, ARRAY_LEN(values));
        tcase_add_loop_test(tcase, test_invalid_json_is_malformed, 0, ARRAY_LEN(no_values));
        tcase_add_loop_test(tcase, test_body_other_than_a_single_json_text_is_malformed, 0,
                            ARRAY_LEN(no_bodies));
        tcase_add_test(tcase, test_white_space_around_the_body_is_accepted);
        tcase_add_test(tcase, test_empty_body_is_malformed);
        tcase_add_loop_test(tcase, test_body_other_than_an_object_is_malformed, 0, ARRAY_LEN(no_objects));
        tcase_add_loop_test(tcase, test_body_that_is_not_utf8_is_malformed, 0, ARRAY_LEN(no_utf8));
        tcase_add_loop_test(tcase, test_64_levels_are_accepted_and_65_refused, 0, 3);
        tcase_add_test(tcase, test_closed_levels_do_not_count);
        tcase_add_test(tcase, test_a_million_levels_are_refused);
        tcase_add_test(tcase, test_error_gives_the_byte_position);
        suite_add_tcase(suite, tcase);
        return suite;
}
