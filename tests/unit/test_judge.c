#include <string.h>

#include "model/cloudevents.h"
#include "model/judge.h"
#include "suites.h"

static struct judge *judge;
static struct dedup *dedup;
static struct topic_table *topics;
static struct event_rules rules;
static const struct event_rules *const all_rules[] = {&rules};
static struct record record;
static struct verdict verdict;

static struct span
span(const char *text)
{
        return (struct span){text, strlen(text)};
}

static void
set_up(void)
{
        struct error error;

        memset(&rules, 0, sizeof(rules));
        rules.source = "invoicing";
        ck_assert_int_eq(pointer_parse("/event", &rules.kind, &error), 0);
        ck_assert_int_eq(pointer_parse("/n", &rules.key, &error), 0);
        topics = topic_table_new();
        topic_table_add_defaults(topics, "inv");
        judge = judge_new(all_rules, 1, topics);
        dedup = dedup_new(86400000);
        memset(&record, 0, sizeof(record));
        record_add_header(&record, RECORD_SOURCE, span("invoicing"));
        record_add_header(&record, RECORD_WEBHOOK_ID, span("w-1"));
        record_add_header(&record, RECORD_TIMESTAMP, span("1795229045"));
        record_add_header(&record, "unrelated", span("ignored"));
        record.timestamp_ms = INT64_C(1795229045000);
}

static void
tear_down(void)
{
        judge_free(judge);
        dedup_free(dedup);
        topic_table_free(topics);
        pointer_clear(&rules.kind);
        pointer_clear(&rules.key);
}

/* The next record, with an id and a body. */
static void
decide(const char *id, const char *body)
{
        record.offset++;
        record.key = span(id);
        record.body = span(body);
        ck_assert_int_eq(judge_decide(judge, dedup, &record, &verdict), 0);
}

static void
assert_quarantined(enum quarantine_reason reason)
{
        ck_assert_int_eq(verdict.action, VERDICT_QUARANTINE);
        ck_assert_str_eq(judge_reason_name(verdict.reason), judge_reason_name(reason));
        ck_assert_int_ne(verdict.detail[0], '\0');
}

START_TEST(test_a_new_delivery_is_published_once)
{
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(verdict.action, VERDICT_PUBLISH);
        ck_assert_str_eq(verdict.topic->topic, "inv.invoice.accepted");
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(verdict.action, VERDICT_DROP);
        decide("d-2", "{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(verdict.action, VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_what_was_only_remembered_is_a_repeat_later)
{
        record.key = span("d-1");
        record.body = span("{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(judge_remember(judge, dedup, &record), 0);
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(verdict.action, VERDICT_DROP);
}
END_TEST

START_TEST(test_each_reason_for_quarantine_is_given)
{
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        decide("d-1", "{\"event\":\"invoice.rejected\"}");
        assert_quarantined(QUARANTINE_CONFLICTING_BODY);
        decide("d-2", "not json");
        assert_quarantined(QUARANTINE_MALFORMED_JSON);
        decide("d-3", "{}");
        assert_quarantined(QUARANTINE_MISSING_KIND);
        decide("d-4", "{\"event\":\"invoice.teleported\"}");
        assert_quarantined(QUARANTINE_UNKNOWN_KIND);
        decide("d-5", "{\"event\":1}");
        assert_quarantined(QUARANTINE_INVALID_FIELD);
        decide("d-6", "{\"event\":\"invoice.rejected\",\"terminal\":1}");
        assert_quarantined(QUARANTINE_INVALID_FIELD);
        ck_assert_str_eq(verdict.detail, "terminal must be true or false");
        record.replay_of = span("d-0");
        decide("d-7", "{\"event\":\"invoice.accepted\"}");
        assert_quarantined(QUARANTINE_REPLAYED_SIGNATURE);
        record.source = span("elsewhere");
        decide("d-8", "{\"event\":\"invoice.accepted\"}");
        assert_quarantined(QUARANTINE_UNKNOWN_SOURCE);
}
END_TEST

START_TEST(test_a_released_copy_comes_in_once)
{
        decide("d-1", "{\"event\":\"invoice.teleported\"}");
        assert_quarantined(QUARANTINE_UNKNOWN_KIND);
        record.released = span("0-17");
        record.replay_of = span("d-0"); /* skipped for what was released */
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(verdict.action, VERDICT_PUBLISH);
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        ck_assert_int_eq(verdict.action, VERDICT_DROP);
}
END_TEST

START_TEST(test_the_same_id_of_two_sources_is_two_deliveries)
{
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        record.source = span("elsewhere");
        decide("d-1", "{\"event\":\"invoice.accepted\"}");
        assert_quarantined(QUARANTINE_UNKNOWN_SOURCE);
}
END_TEST

START_TEST(test_a_record_without_a_key_is_not_one_of_ours)
{
        decide("", "{\"event\":\"invoice.accepted\"}");
        assert_quarantined(QUARANTINE_UNKNOWN_SOURCE);
        decide("", "{\"event\":\"invoice.accepted\"}");
        assert_quarantined(QUARANTINE_UNKNOWN_SOURCE);
}
END_TEST

static const struct {
        enum event_key from;
        const char *body;
        const char *key;
} keys[] = {
    {EVENT_KEY_KIND, "{\"event\":\"invoice.accepted\"}", "invoice.accepted"},
    {EVENT_KEY_DELIVERY_ID, "{\"event\":\"invoice.accepted\"}", "d-1"},
    {EVENT_KEY_WEBHOOK_ID, "{\"event\":\"invoice.accepted\"}", "w-1"},
    {EVENT_KEY_POINTER, "{\"event\":\"invoice.accepted\",\"n\":\"N-7\"}", "N-7"},
    {EVENT_KEY_POINTER, "{\"event\":\"invoice.accepted\",\"n\":1.50}", "1.50"},
    {EVENT_KEY_POINTER, "{\"event\":\"invoice.accepted\",\"n\":\"\"}", "d-1"},
    {EVENT_KEY_POINTER, "{\"event\":\"invoice.accepted\",\"n\":{}}", "d-1"},
    {EVENT_KEY_POINTER, "{\"event\":\"invoice.accepted\"}", "d-1"},
};

START_TEST(test_the_key_is_what_the_rules_say_and_never_empty)
{
        rules.key_from = keys[_i].from;
        decide("d-1", keys[_i].body);
        ck_assert_int_eq(verdict.action, VERDICT_PUBLISH);
        ck_assert_uint_eq(verdict.key.len, strlen(keys[_i].key));
        ck_assert_mem_eq(verdict.key.data, keys[_i].key, verdict.key.len);
}
END_TEST

START_TEST(test_an_event_is_described_as_a_cloudevent)
{
        static const char *const expected[][2] = {
            {"content-type", "application/json"},
            {"ce_specversion", "1.0"},
            {"ce_id", "d-1"},
            {"ce_type", "invoice.accepted"},
            {"ce_source", "/invoicing"},
            {"ce_time", "2026-11-21T02:44:05Z"},
            {"ce_webhookid", "w-1"},
            {"ce_subject", "S"},
            {"traceparent", "00-1"},
        };
        struct cloudevents event;
        struct error error;

        ck_assert_int_eq(pointer_parse("/s", &rules.subject, &error), 0);
        record_add_header(&record, RECORD_TRACEPARENT, span("00-1"));
        decide("d-1", "{\"event\":\"invoice.accepted\",\"s\":\"S\"}");
        cloudevents_describe(&record, &verdict, &event);
        ck_assert_uint_eq(event.n, ARRAY_LEN(expected));
        for (size_t i = 0; i < event.n; i++) {
                ck_assert_str_eq(event.headers[i].name, expected[i][0]);
                ck_assert_uint_eq(event.headers[i].value.len, strlen(expected[i][1]));
                ck_assert_mem_eq(event.headers[i].value.data, expected[i][1], event.headers[i].value.len);
        }
        pointer_clear(&rules.subject);
}
END_TEST

Suite *
suite_judge(void)
{
        Suite *suite = suite_create("judge");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_a_new_delivery_is_published_once);
        tcase_add_test(all, test_what_was_only_remembered_is_a_repeat_later);
        tcase_add_test(all, test_each_reason_for_quarantine_is_given);
        tcase_add_test(all, test_a_released_copy_comes_in_once);
        tcase_add_test(all, test_the_same_id_of_two_sources_is_two_deliveries);
        tcase_add_test(all, test_a_record_without_a_key_is_not_one_of_ours);
        tcase_add_loop_test(all, test_the_key_is_what_the_rules_say_and_never_empty, 0, (int)ARRAY_LEN(keys));
        tcase_add_test(all, test_an_event_is_described_as_a_cloudevent);
        suite_add_tcase(suite, all);
        return suite;
}
