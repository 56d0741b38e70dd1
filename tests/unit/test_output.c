#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/output.h"
#include "spans.h"
#include "suites.h"

static const struct event_rules rules = {.source = "invoicing", .ce_source = "/invoicing"};
static const struct topic_rule topic = {.topic = "p.invoice.accepted"};
static const struct record record = {
    .partition = 3, .offset = 12345678901, .key = {"d-1", 3}, .body = {"{}", 2}, .source = {"invoicing", 9}};

START_TEST(test_event_has_its_own_headers_only)
{
        struct verdict verdict = {.action = VERDICT_PUBLISH, .topic = &topic, .rules = &rules};
        struct output_event event;
        struct output output;

        verdict.kind = SPAN("invoice.accepted");
        verdict.key = SPAN("k");
        output_describe_event(&record, &verdict, &event);
        ck_assert_int_eq(output_describe(&record, &verdict, "p.quarantine", &output), 1);
        ck_assert_str_eq(output.topic, "p.invoice.accepted");
        assert_span(output.key, "k");
        assert_span(output.value, "{}");
        ck_assert_int_eq(output.keeps_headers, 0);
        ck_assert_uint_eq(output.n_headers, event.n);
        for (size_t i = 0; i < event.n; i++) {
                ck_assert_str_eq(output.headers[i].name, event.headers[i].name);
                ck_assert_uint_eq(output.headers[i].value.len, event.headers[i].value.len);
        }
}
END_TEST

START_TEST(test_quarantined_record_keeps_its_content_and_adds_reason_and_place)
{
        struct verdict verdict = {.action = VERDICT_QUARANTINE,
                                  .reason = QUARANTINE_UNKNOWN_KIND,
                                  .detail = "no topic"};
        struct output output;

        ck_assert_int_eq(output_describe(&record, &verdict, "p.quarantine", &output), 1);
        ck_assert_str_eq(output.topic, "p.quarantine");
        assert_span(output.key, "d-1");
        assert_span(output.value, "{}");
        ck_assert_int_eq(output.keeps_headers, 1);
        ck_assert_uint_eq(output.n_headers, 4);
        ck_assert_str_eq(output.headers[0].name, "gatepost-reason");
        assert_span(output.headers[0].value, "unknown-kind");
        ck_assert_str_eq(output.headers[1].name, "gatepost-detail");
        assert_span(output.headers[1].value, "no topic");
        ck_assert_str_eq(output.headers[2].name, "gatepost-partition");
        assert_span(output.headers[2].value, "3");
        ck_assert_str_eq(output.headers[3].name, "gatepost-offset");
        assert_span(output.headers[3].value, "12345678901");
}
END_TEST

static const struct verdict unpublishable = {.action = VERDICT_QUARANTINE,
                                             .reason = QUARANTINE_UNPUBLISHABLE,
                                             .detail = "message too large"};

START_TEST(test_unpublishable_record_is_replaced_by_a_stub)
{
        static const char *const names[] = {
            "gatepost-source",   "gatepost-webhook-id", "gatepost-timestamp",       "gatepost-signature",
            "gatepost-received", "gatepost-request-id", "gatepost-instance",        "gatepost-replay-of",
            "gatepost-released", "gatepost-spooled",    "gatepost-spool-signature", "gatepost-reason",
            "gatepost-detail",   "gatepost-partition",  "gatepost-offset"};
        struct record full = record;
        struct output output;

        for (size_t i = 0; i < 11; i++)
                record_add_header(&full, names[i], SPAN("text"));
        record_add_header(&full, "traceparent", SPAN("00-aa-bb-01"));
        ck_assert_int_eq(output_describe(&full, &unpublishable, "p.quarantine", &output), 1);
        ck_assert_str_eq(output.topic, "p.quarantine");
        assert_span(output.key, "d-1");
        ck_assert_ptr_null(output.value.data);
        ck_assert_uint_eq(output.value.len, 0);
        ck_assert_int_eq(output.keeps_headers, 0);
        ck_assert_uint_eq(output.n_headers, ARRAY_LEN(names));
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                ck_assert_str_eq(output.headers[i].name, names[i]);
        for (size_t i = 0; i < 11; i++)
                assert_span(output.headers[i].value, "text");
        assert_span(output.headers[11].value, "unpublishable");
        assert_span(output.headers[12].value, "message too large");
        assert_span(output.headers[13].value, "3");
        assert_span(output.headers[14].value, "12345678901");
}
END_TEST

START_TEST(test_stub_of_a_large_record_is_small)
{
        static char text[100000];
        struct record large = {.key = {text, 1025}, .source = {text, sizeof(text)}, .released = {text, 1024}};
        struct output output;

        memset(text, 'x', sizeof(text));
        ck_assert_int_eq(output_describe(&large, &unpublishable, "p.quarantine", &output), 1);
        ck_assert_ptr_null(output.key.data);
        ck_assert_uint_eq(output.key.len, 0);
        ck_assert_uint_eq(output.n_headers, 6);
        ck_assert_str_eq(output.headers[0].name, "gatepost-source");
        ck_assert_uint_eq(output.headers[0].value.len, 1024);
        ck_assert_str_eq(output.headers[1].name, "gatepost-released");
        ck_assert_uint_eq(output.headers[1].value.len, 1024);
        large.key.len = 1024;
        ck_assert_int_eq(output_describe(&large, &unpublishable, "p.quarantine", &output), 1);
        ck_assert_uint_eq(output.key.len, 1024);
}
END_TEST

START_TEST(test_repeat_has_no_output)
{
        struct verdict verdict = {.action = VERDICT_DROP};
        struct output output;

        ck_assert_int_eq(output_describe(&record, &verdict, "p.quarantine", &output), 0);
}
END_TEST

Suite *
suite_output(void)
{
        Suite *suite = suite_create("output");
        TCase *tcase = tcase_create("output");

        tcase_add_test(tcase, test_event_has_its_own_headers_only);
        tcase_add_test(tcase, test_quarantined_record_keeps_its_content_and_adds_reason_and_place);
        tcase_add_test(tcase, test_unpublishable_record_is_replaced_by_a_stub);
        tcase_add_test(tcase, test_stub_of_a_large_record_is_small);
        tcase_add_test(tcase, test_repeat_has_no_output);
        suite_add_tcase(suite, tcase);
        return suite;
}
