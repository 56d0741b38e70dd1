#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/output.h"
#include "spans.h"
#include "suites.h"

static struct event_rules rules;
static struct output_event event;
static struct record record;
static struct verdict verdict;

static void
set_up(void)
{
        rules = (struct event_rules){.source = "invoicing", .ce_source = "/invoicing"};
        memset(&event, 0xff, sizeof(event)); /* the previous content must not matter */
        record = (struct record){
            .key = SPAN("d-1"),
            .body = SPAN("{}"),
            .source = SPAN("invoicing"),
            .webhook_id = SPAN("w-1"),
            .timestamp = SPAN("1795230245"),
        };
        verdict = (struct verdict){
            .action = VERDICT_PUBLISH,
            .rules = &rules,
            .kind = SPAN("invoice.accepted"),
            .key = SPAN("partition-me"),
        };
}

static void
assert_header(size_t index, const char *name, const char *value)
{
        struct span found = event.headers[index].value;

        ck_assert_str_eq(event.headers[index].name, name);
        ck_assert_msg(span_equals(found, (struct span){value, strlen(value)}), "%s is '%.*s', not '%s'", name,
                      (int)found.len, found.data, value);
}

START_TEST(test_event_has_cloudevents_binary_mode_headers)
{
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.n, 7);
        assert_header(0, "content-type", "application/json");
        assert_header(1, "ce_specversion", "1.0");
        assert_header(2, "ce_id", "d-1");
        assert_header(3, "ce_type", "invoice.accepted");
        assert_header(4, "ce_source", "/invoicing");
        assert_header(5, "ce_time", "2026-11-21T03:04:05Z");
        assert_header(6, "ce_webhookid", "w-1");
}
END_TEST

START_TEST(test_released_event_has_its_own_id)
{
        static char key[JUDGE_TEXT_MAX];

        record.released = SPAN("2-17");
        output_describe_event(&record, &verdict, &event);
        assert_header(2, "ce_id", "d-1.2-17");
        memset(key, 'k', sizeof(key));
        record.key = (struct span){key, sizeof(key)};
        record.released = SPAN("2147483647-9223372036854775807");
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.headers[2].value.len, sizeof(key) + 31);
        ck_assert_mem_eq(event.headers[2].value.data + sizeof(key), ".2147483647-9223372036854775807", 31);
}
END_TEST

START_TEST(test_subject_and_trace_context_are_added_if_present)
{
        verdict.subject = SPAN("INV-1");
        rules.ce_dataschema_base = "https://schemas.example/";
        record.traceparent = SPAN("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        record.tracestate = SPAN("congo=t61rcWkgMzE");
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.n, OUTPUT_EVENT_MAX_HEADERS);
        assert_header(7, "ce_subject", "INV-1");
        assert_header(8, "ce_dataschema", "https://schemas.example/invoice.accepted.v1.json");
        assert_header(9, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_header(10, "tracestate", "congo=t61rcWkgMzE");
}
END_TEST

START_TEST(test_kind_may_contain_nul_bytes)
{
        verdict.kind = SPAN("reporting_batch.\xc3\xa4\0b");
        output_describe_event(&record, &verdict, &event);
        assert_span(event.headers[3].value, "reporting_batch.\xc3\xa4\0b");
}
END_TEST

START_TEST(test_configured_names_are_used)
{
        rules.ce_source = "https://invoicing.example/eu";
        rules.ce_type_prefix = "com.example.";
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.n, 7);
        assert_header(3, "ce_type", "com.example.invoice.accepted");
        assert_header(4, "ce_source", "https://invoicing.example/eu");
}
END_TEST

START_TEST(test_longest_names_fit)
{
        static char source[RULES_SOURCE_MAX + 1], prefix[RULES_TYPE_PREFIX_MAX + 1], kind[255],
            base[RULES_SCHEMA_BASE_MAX + 1];
        static const char suffix[] = "held_unmapped_decision.v1.json";

        memset(source, 's', sizeof(source) - 1);
        memset(prefix, 'p', sizeof(prefix) - 1);
        memset(base, 'b', sizeof(base) - 1);
        memset(kind, 'k', sizeof(kind));
        rules =
            (struct event_rules){.ce_source = source, .ce_type_prefix = prefix, .ce_dataschema_base = base};
        verdict.kind = (struct span){kind, sizeof(kind)};
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.headers[3].value.len, RULES_TYPE_PREFIX_MAX + 255);
        ck_assert_int_eq(event.headers[3].value.data[RULES_TYPE_PREFIX_MAX], 'k');
        assert_header(4, "ce_source", source);
        verdict.kind = SPAN("held_unmapped_decision");
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.headers[7].value.len, RULES_SCHEMA_BASE_MAX + sizeof(suffix) - 1);
        ck_assert_mem_eq(event.headers[7].value.data + RULES_SCHEMA_BASE_MAX, suffix, sizeof(suffix) - 1);
}
END_TEST

START_TEST(test_schema_is_that_of_the_documented_kind_or_family)
{
        static const char *const cases[][2] = {
            {"invoice.cancelled", "urn:x/invoice.cancelled.v1.json"},
            {"reporting_batch.overdue", "urn:x/reporting_batch.v1.json"},
            {"reporting_batch.", "urn:x/event.v1.json"},
            {"invoice.future", "urn:x/event.v1.json"},
            {"../../etc/passwd", "urn:x/event.v1.json"},
        };

        rules.ce_dataschema_base = "urn:x/";
        verdict.kind = (struct span){cases[_i][0], strlen(cases[_i][0])};
        output_describe_event(&record, &verdict, &event);
        assert_header(7, "ce_dataschema", cases[_i][1]);
}
END_TEST

START_TEST(test_invalid_timestamp_omits_the_time)
{
        static const struct span foreign[] = {
            {NULL, 0},
            SPAN_OF(""),
            SPAN_OF("179523024"),
            SPAN_OF("17952302450"),
            SPAN_OF("179523024x"),
            SPAN_OF("-179523024"),
            SPAN_OF("\0\0\0\0\0\0\0\0\0\0"),
        };

        for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
                record.timestamp = foreign[i];
                output_describe_event(&record, &verdict, &event);
                ck_assert_uint_eq(event.n, 6);
                assert_header(5, "ce_webhookid", "w-1");
        }
}
END_TEST

START_TEST(test_missing_webhook_id_omits_its_header)
{
        record.webhook_id = NO_SPAN;
        output_describe_event(&record, &verdict, &event);
        ck_assert_uint_eq(event.n, 6);
        assert_header(5, "ce_time", "2026-11-21T03:04:05Z");
}
END_TEST

START_TEST(test_earliest_and_latest_timestamps_have_a_time)
{
        record.timestamp = SPAN("0000000000");
        output_describe_event(&record, &verdict, &event);
        assert_header(5, "ce_time", "1970-01-01T00:00:00Z");
        record.timestamp = SPAN("9999999999");
        output_describe_event(&record, &verdict, &event);
        assert_header(5, "ce_time", "2286-11-20T17:46:39Z");
}
END_TEST

Suite *
suite_cloudevents(void)
{
        Suite *suite = suite_create("cloudevents");
        TCase *tcase = tcase_create("cloudevents");

        tcase_add_checked_fixture(tcase, set_up, NULL);
        tcase_add_test(tcase, test_event_has_cloudevents_binary_mode_headers);
        tcase_add_test(tcase, test_released_event_has_its_own_id);
        tcase_add_test(tcase, test_subject_and_trace_context_are_added_if_present);
        tcase_add_test(tcase, test_kind_may_contain_nul_bytes);
        tcase_add_test(tcase, test_configured_names_are_used);
        tcase_add_test(tcase, test_longest_names_fit);
        tcase_add_loop_test(tcase, test_schema_is_that_of_the_documented_kind_or_family, 0, 5);
        tcase_add_test(tcase, test_invalid_timestamp_omits_the_time);
        tcase_add_test(tcase, test_missing_webhook_id_omits_its_header);
        tcase_add_test(tcase, test_earliest_and_latest_timestamps_have_a_time);
        suite_add_tcase(suite, tcase);
        return suite;
}
