#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/decode.h"
#include "suites.h"

static struct decoder *decoder;
static struct event_rules rules;
static struct decoded decoded;

static void
set_up(void)
{
        struct error error;

        memset(&rules, 0, sizeof(rules));
        decoder = decoder_new();
        ck_assert_int_eq(pointer_parse("/event", &rules.kind, &error), 0);
        ck_assert_int_eq(pointer_parse("/data/items/1/id", &rules.key, &error), 0);
        ck_assert_int_eq(pointer_parse("/invoiceId", &rules.subject, &error), 0);
}

static void
tear_down(void)
{
        pointer_clear(&rules.kind);
        pointer_clear(&rules.key);
        pointer_clear(&rules.subject);
        decoder_free(decoder);
}

static enum decode_result
decode_bytes(const char *body, size_t len)
{
        enum decode_result result;

        ck_assert_int_eq(decoder_run(decoder, &rules, (struct span){body, len}, &decoded, &result), 0);
        return result;
}

static enum decode_result
decode(const char *body)
{
        return decode_bytes(body, strlen(body));
}

static void
assert_span(struct span span, const char *expected)
{
        ck_assert_uint_eq(span.len, strlen(expected));
        ck_assert_mem_eq(span.data, expected, span.len);
}

START_TEST(test_what_the_rules_point_at_is_found)
{
        ck_assert_int_eq(decode("{\"event\":\"invoice.accepted\",\"invoiceId\":\"\\u017c-42\","
                                "\"data\":{\"items\":[{\"id\":1},{\"id\":-1.50e3}]}}"),
                         DECODE_OK);
        assert_span(decoded.kind, "invoice.accepted");
        assert_span(decoded.key, "-1.50e3");
        assert_span(decoded.subject, "\xc5\xbc-42");
}
END_TEST

START_TEST(test_only_strings_and_numbers_are_keys_and_only_strings_subjects)
{
        ck_assert_int_eq(decode("{\"event\":\"e\",\"invoiceId\":7,\"data\":{\"items\":[0,{\"id\":true}]}}"),
                         DECODE_OK);
        ck_assert_ptr_null(decoded.key.data);
        ck_assert_ptr_null(decoded.subject.data);
        ck_assert_int_eq(decode("{\"event\":\"e\",\"data\":{\"items\":[{\"id\":\"first\"}]}}"), DECODE_OK);
        ck_assert_ptr_null(decoded.key.data);
}
END_TEST

static const struct {
        const char *body;
        enum decode_result result;
} bodies[] = {
    {"", DECODE_MALFORMED_JSON},
    {" ", DECODE_MALFORMED_JSON},
    {"[]", DECODE_MALFORMED_JSON},
    {"\"event\"", DECODE_MALFORMED_JSON},
    {"null", DECODE_MALFORMED_JSON},
    {"{}", DECODE_MISSING_KIND},
    {"{\"event\":null}", DECODE_MISSING_KIND},
    {"{\"data\":{\"event\":\"e\"}}", DECODE_MISSING_KIND},
    {"{\"event\":7}", DECODE_INVALID_KIND},
    {"{\"event\":{}}", DECODE_INVALID_KIND},
    {"{\"event\":\"e\"}", DECODE_OK},
    {" \t\r\n{\"event\":\"e\"}\n", DECODE_OK},
    {"{\"event\":\"\"}", DECODE_OK},
    {"{\"ev\\u0065nt\":\"e\"}", DECODE_OK},
    {"{\"event\":\"e\",\"event\":\"e\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"ev\\u0065nt\":\"f\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"x\":1,\"x\":2}", DECODE_OK},
    {"{\"event\":\"e\"}{}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\"} x", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":[1,]}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":01}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":+1}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":.5}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":1.}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":NaN}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\"a\":-}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\" /* no */}", DECODE_MALFORMED_JSON},
    {"{event:\"e\"}", DECODE_MALFORMED_JSON},
    {"{'event':'e'}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e", DECODE_MALFORMED_JSON},
    {"{\"event\":\"\\x\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"\\u12\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"a\nb\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"e\",\v\"a\":1}", DECODE_MALFORMED_JSON},
    {"\xef\xbb\xbf{\"event\":\"e\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"\xc0\xaf\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"\xed\xa0\x80\"}", DECODE_MALFORMED_JSON},
    {"{\"event\":\"\xf4\x90\x80\x80\"}", DECODE_MALFORMED_JSON},
};

START_TEST(test_a_body_is_what_it_is)
{
        ck_assert_msg(decode(bodies[_i].body) == bodies[_i].result, "%s: %s", bodies[_i].body,
                      decoded.detail);
        ck_assert_int_eq(decoded.detail[0] == '\0', bodies[_i].result == DECODE_OK);
}
END_TEST

START_TEST(test_nul_bytes_are_no_json)
{
        ck_assert_int_eq(decode_bytes("{\"event\":\"e\"}\0", 14), DECODE_MALFORMED_JSON);
        ck_assert_int_eq(decode_bytes("{\"event\":\"e\0\"}", 14), DECODE_MALFORMED_JSON);
        ck_assert_int_eq(decode_bytes("\0", 1), DECODE_MALFORMED_JSON);
}
END_TEST

START_TEST(test_64_levels_pass_and_65_do_not)
{
        char body[512];

        for (int levels = 63; levels <= 65; levels++) {
                size_t len = (size_t)snprintf(body, sizeof(body), "{\"event\":\"e\",\"a\":");

                memset(body + len, '[', (size_t)levels - 1);
                memset(body + len + levels - 1, ']', (size_t)levels - 1);
                len += 2 * ((size_t)levels - 1);
                body[len++] = '}';
                ck_assert_int_eq(decode_bytes(body, len), levels <= 64 ? DECODE_OK : DECODE_MALFORMED_JSON);
        }
}
END_TEST

START_TEST(test_an_object_on_the_way_to_the_kind_may_not_be_there_twice)
{
        struct error error;

        pointer_clear(&rules.kind);
        ck_assert_int_eq(pointer_parse("/meta/event", &rules.kind, &error), 0);
        ck_assert_int_eq(decode("{\"meta\":{\"event\":\"e\"},\"x\":{\"meta\":{}}}"), DECODE_OK);
        ck_assert_int_eq(decode("{\"meta\":{\"event\":\"e\"},\"meta\":{}}"), DECODE_MALFORMED_JSON);
        ck_assert_int_eq(decode("{\"meta\":{},\"meta\":{\"event\":\"e\"}}"), DECODE_MALFORMED_JSON);
}
END_TEST

static const struct {
        const char *member;
        const char *fault;
} fields[] = {
    {"\"clearanceStatus\":\"REJECTED\"", ""},
    {"\"clearanceStatus\":7", "clearanceStatus must be a string"},
    {"\"clearanceStatus\":null", ""},
    {"\"terminal\":true", ""},
    {"\"terminal\":\"true\"", "terminal must be true or false"},
    {"\"rejectedAt\":\"2026-11-21T03:04:05Z\"", ""},
    {"\"rejectedAt\":\"2026-11-21T03:04:05+01:00\"", "rejectedAt must be an ISO 8601 UTC timestamp"},
    {"\"rejectedAt\":1795229045", "rejectedAt must be an ISO 8601 UTC timestamp"},
    {"\"error\":\"oops\"", "error must be an object"},
    {"\"error\":{\"code\":440}", "error.code must be a string"},
    {"\"error\":{\"source\":\"a\",\"code\":\"b\",\"message\":\"c\",\"detail\":null,\"more\":1}", ""},
    {"\"data\":{\"error\":{\"detail\":[]}}", "data.error.detail must be a string"},
    {"\"data\":{\"terminal\":0}", "data.terminal must be true or false"},
    {"\"other\":{\"terminal\":0}", ""},
    {"\"data\":{\"data\":{\"terminal\":0}}", ""},
};

START_TEST(test_documented_fields_are_checked_where_they_are)
{
        char body[256];

        (void)snprintf(body, sizeof(body), "{%s,\"event\":\"e\"}", fields[_i].member);
        ck_assert_int_eq(decode(body), DECODE_OK);
        ck_assert_str_eq(decoded.field_fault, fields[_i].fault);
}
END_TEST

Suite *
suite_decode(void)
{
        Suite *suite = suite_create("decode");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_what_the_rules_point_at_is_found);
        tcase_add_test(all, test_only_strings_and_numbers_are_keys_and_only_strings_subjects);
        tcase_add_loop_test(all, test_a_body_is_what_it_is, 0, (int)(sizeof(bodies) / sizeof(bodies[0])));
        tcase_add_test(all, test_nul_bytes_are_no_json);
        tcase_add_test(all, test_64_levels_pass_and_65_do_not);
        tcase_add_test(all, test_an_object_on_the_way_to_the_kind_may_not_be_there_twice);
        tcase_add_loop_test(all, test_documented_fields_are_checked_where_they_are, 0,
                            (int)(sizeof(fields) / sizeof(fields[0])));
        suite_add_tcase(suite, all);
        return suite;
}
