#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "bodies.h"
#include "suites.h"

/* The documented fields, each at the top and under data; %s is replaced by the field. */
static const char *const places[] = {"{\"event\":\"x\",%s}", "{\"event\":\"x\",\"data\":{%s}}"};
static const char *const prefixes[] = {"", "data."};

static const char *
fault_of(size_t place, const char *members)
{
        char body[512];

        (void)snprintf(body, sizeof(body), places[place], members);
        ck_assert_int_eq(decode_text(body), DECODE_OK);
        assert_span(decoded.kind, "x");
        return decoded.field_fault;
}

static const char *const right[] = {
    "\"clearanceStatus\":\"REJECTED\"",
    "\"clearanceStatus\":null",
    "\"terminal\":true",
    "\"terminal\":false",
    "\"terminal\":null",
    "\"rejectedAt\":\"2026-11-21T03:04:05Z\"",
    "\"rejectedAt\":\"2026-11-21T03:04:05.678+00:00\"",
    "\"rejectedAt\":null",
    "\"error\":{}",
    "\"error\":null",
    "\"error\":{\"source\":\"authority\",\"code\":\"E1\",\"message\":\"\",\"detail\":\"\\u0000\"}",
    "\"error\":{\"source\":null,\"code\":null,\"message\":null,\"detail\":null,\"other\":1}",
    "\"Terminal\":1,\"terminal2\":2,\"status\":3,\"x\":{\"terminal\":4,\"error\":5}",
    "\"list\":[{\"terminal\":1}],\"source\":1,\"code\":2,\"message\":3,\"detail\":4",
    "\"error\":{\"error\":1,\"terminal\":2,\"source\":\"s\"}",
};

START_TEST(test_fields_of_the_right_type_and_unknown_fields_pass)
{
        for (size_t place = 0; place < ARRAY_LEN(places); place++)
                ck_assert_str_eq(fault_of(place, right[_i]), "");
}
END_TEST

static const struct {
        const char *members;
        const char *fault;
} wrong[] = {
    {"\"clearanceStatus\":1", "clearanceStatus must be a string"},
    {"\"clearanceStatus\":{}", "clearanceStatus must be a string"},
    {"\"clearanceStatus\":[\"x\"]", "clearanceStatus must be a string"},
    {"\"terminal\":\"true\"", "terminal must be true or false"},
    {"\"terminal\":1", "terminal must be true or false"},
    {"\"terminal\":[true]", "terminal must be true or false"},
    {"\"rejectedAt\":1795230245", "rejectedAt must be an ISO 8601 UTC timestamp"},
    {"\"rejectedAt\":\"\"", "rejectedAt must be an ISO 8601 UTC timestamp"},
    {"\"rejectedAt\":\"2026-11-21T03:04:05\"", "rejectedAt must be an ISO 8601 UTC timestamp"},
    {"\"rejectedAt\":\"2026-11-21T03:04:05+01:00\"", "rejectedAt must be an ISO 8601 UTC timestamp"},
    {"\"error\":\"E1\"", "error must be an object"},
    {"\"error\":[{}]", "error must be an object"},
    {"\"error\":false", "error must be an object"},
    {"\"error\":{\"source\":1}", "error.source must be a string"},
    {"\"error\":{\"code\":42}", "error.code must be a string"},
    {"\"error\":{\"message\":{\"en\":\"x\"}}", "error.message must be a string"},
    {"\"error\":{\"detail\":[\"x\"]}", "error.detail must be a string"},
    {"\"t\\u0065rminal\":0", "terminal must be true or false"},
};

START_TEST(test_field_of_a_wrong_type_is_named)
{
        char expected[128];

        for (size_t place = 0; place < ARRAY_LEN(places); place++) {
                (void)snprintf(expected, sizeof(expected), "%s%s", prefixes[place], wrong[_i].fault);
                ck_assert_str_eq(fault_of(place, wrong[_i].members), expected);
        }
}
END_TEST

/* Values of all types; in the letters of a field, ! means a type that it does not accept. */
static const char *const typed_values[] = {"null", "true", "7", "\"2026-11-21T03:04:05Z\"", "{}", "[]"};
static const struct {
        const char *path, *types;
} typed_fields[] = {
    {"\"clearanceStatus\":%s", "n!!s!!"},     {"\"terminal\":%s", "nb!!!!"},
    {"\"rejectedAt\":%s", "n!!s!!"},          {"\"error\":%s", "n!!!o!"},
    {"\"error\":{\"source\":%s}", "n!!s!!"},  {"\"error\":{\"code\":%s}", "n!!s!!"},
    {"\"error\":{\"message\":%s}", "n!!s!!"}, {"\"error\":{\"detail\":%s}", "n!!s!!"},
};

START_TEST(test_field_takes_its_type_and_null_only)
{
        char members[128];

        for (size_t place = 0; place < ARRAY_LEN(places); place++) {
                for (size_t i = 0; i < ARRAY_LEN(typed_values); i++) {
                        (void)snprintf(members, sizeof(members), typed_fields[_i].path, typed_values[i]);
                        ck_assert_msg((fault_of(place, members)[0] == '\0') ==
                                          (typed_fields[_i].types[i] != '!'),
                                      "%s", members);
                }
        }
}
END_TEST

static const struct {
        const char *text;
        int is_right;
} times[] = {
    {"2026-11-21T03:04:05Z", 1},
    {"2026-11-21T03:04:05.6Z", 1},
    {"2026-11-21T03:04:05.123456789Z", 1},
    {"2026-11-21T03:04:05+00:00", 1},
    {"2026-11-21T03:04:05.6+00:00", 1},
    {"2024-02-29T23:59:60Z", 1},
    {"", 0},
    {"2026-11-21", 0},
    {"2026-11-21T03:04:05", 0},
    {"2026-11-21T03:04:05+01:00", 0},
    {"2026-11-21T03:04:05-00:00", 0},
    {"2026-11-21 03:04:05Z", 0},
    {"2026-02-29T03:04:05Z", 0},
    {"2026-11-31T03:04:05Z", 0},
    {"2026-11-21T24:00:00Z", 0},
    {"2026-11-21T03:04:05.Z", 0},
    {"2026-11-21T03:04:05Zx", 0},
    {" 2026-11-21T03:04:05Z", 0},
    {"1795230245", 0},
};

START_TEST(test_rejection_time_is_a_time_in_utc)
{
        char members[128];

        (void)snprintf(members, sizeof(members), "\"rejectedAt\":\"%s\"", times[_i].text);
        for (size_t place = 0; place < ARRAY_LEN(places); place++)
                ck_assert_int_eq(fault_of(place, members)[0] == '\0', times[_i].is_right);
}
END_TEST

START_TEST(test_first_wrong_field_is_named)
{
        ck_assert_str_eq(fault_of(0, "\"terminal\":0,\"error\":1,\"clearanceStatus\":2"),
                         "terminal must be true or false");
        ck_assert_str_eq(fault_of(0, "\"clearanceStatus\":2,\"terminal\":0"),
                         "clearanceStatus must be a string");
        ck_assert_str_eq(fault_of(1, "\"x\":1},\"terminal\":0,\"y\":{"), "terminal must be true or false");
}
END_TEST

START_TEST(test_field_inside_an_array_is_ignored)
{
        ck_assert_int_eq(decode_text("{\"event\":\"x\",\"data\":[{\"terminal\":1},{\"error\":2}]}"),
                         DECODE_OK);
        ck_assert_str_eq(decoded.field_fault, "");
}
END_TEST

START_TEST(test_documented_field_may_be_the_kind_too)
{
        set_pointer(&rules.kind, "/data/error/code");
        ck_assert_int_eq(decode_text("{\"data\":{\"error\":{\"code\":\"E1\"}}}"), DECODE_OK);
        assert_span(decoded.kind, "E1");
        ck_assert_int_eq(decode_text("{\"data\":{\"error\":{\"code\":1}}}"), DECODE_INVALID_KIND);
}
END_TEST

Suite *
suite_decode_fields(void)
{
        Suite *suite = suite_create("decode_fields");
        TCase *tcase = tcase_create("decode_fields");

        tcase_add_checked_fixture(tcase, set_up_decoder, tear_down_decoder);
        tcase_add_loop_test(tcase, test_fields_of_the_right_type_and_unknown_fields_pass, 0,
                            ARRAY_LEN(right));
        tcase_add_loop_test(tcase, test_field_of_a_wrong_type_is_named, 0, ARRAY_LEN(wrong));
        tcase_add_loop_test(tcase, test_field_takes_its_type_and_null_only, 0, ARRAY_LEN(typed_fields));
        tcase_add_loop_test(tcase, test_rejection_time_is_a_time_in_utc, 0, ARRAY_LEN(times));
        tcase_add_test(tcase, test_first_wrong_field_is_named);
        tcase_add_test(tcase, test_field_inside_an_array_is_ignored);
        tcase_add_test(tcase, test_documented_field_may_be_the_kind_too);
        suite_add_tcase(suite, tcase);
        return suite;
}
