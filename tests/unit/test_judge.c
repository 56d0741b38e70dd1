#include "base/compiler.h"
#include "base/utf8.h"
#include "model/judge.h"
#include "spans.h"
#include "suites.h"

#define T INT64_C(1795230240000)
#define WINDOW INT64_C(160000)
#define ACCEPTED SPAN_OF("{\"event\":\"invoice.accepted\",\"id\":\"INV-1\",\"n\":17}")

static struct event_rules invoicing, billing;
static const struct event_rules *const all_rules[] = {&invoicing, &billing};
static struct topic_table *topics;
static struct judge *judge;
static struct dedup *dedup;
static struct verdict verdict;
static int64_t next_offset;

static void
set_pointer(struct pointer *pointer, const char *text)
{
        struct error error;

        pointer_clear(pointer);
        ck_assert_int_eq(pointer_parse(text, pointer, &error), 0);
}

static void
set_up(void)
{
        invoicing = (struct event_rules){.source = "invoicing"};
        billing = (struct event_rules){.source = "billing"};
        set_pointer(&invoicing.kind, "/event");
        set_pointer(&billing.kind, "/type");
        topics = topic_table_new();
        topic_table_add_defaults(topics, "p");
        judge = judge_new(all_rules, ARRAY_LEN(all_rules), topics);
        dedup = dedup_new(WINDOW, DEDUP_COMPLETE);
        ck_assert_ptr_nonnull(judge);
        ck_assert_ptr_nonnull(dedup);
        next_offset = 100;
}

static void
tear_down(void)
{
        pointer_clear(&invoicing.kind);
        pointer_clear(&invoicing.key);
        pointer_clear(&invoicing.subject);
        pointer_clear(&billing.kind);
        topic_table_free(topics);
        judge_free(judge);
        dedup_free(dedup);
}

/* The next record of the log, from the source invoicing. */
static struct record
record_of(struct span delivery_id, struct span body)
{
        return (struct record){.offset = next_offset++,
                               .timestamp_ms = T,
                               .key = delivery_id,
                               .body = body,
                               .source = SPAN("invoicing"),
                               .webhook_id = SPAN("w-1")};
}

static enum verdict_action
decide(const struct record *record)
{
        memset(&verdict, 0xff, sizeof(verdict));
        ck_assert_int_eq(judge_decide(judge, dedup, record, &verdict), 0);
        return verdict.action;
}

/* Decide a record that must land in quarantine; its reason by name. */
static const char *
reason_of(const struct record *record)
{
        ck_assert_int_eq(decide(record), VERDICT_QUARANTINE);
        ck_assert_str_ne(verdict.detail, "");
        ck_assert(utf8_is_valid(verdict.detail, strlen(verdict.detail)));
        return judge_reason_name(verdict.reason);
}

START_TEST(test_genuine_delivery_is_published_to_its_kinds_topic)
{
        struct record record = record_of(SPAN("d-1"), (struct span)ACCEPTED);

        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        ck_assert_str_eq(verdict.topic->topic, "p.invoice.accepted");
        ck_assert_ptr_eq(verdict.rules, &invoicing);
        assert_span(verdict.kind, "invoice.accepted");
        assert_span(verdict.key, "invoice.accepted");
        ck_assert_ptr_null(verdict.subject.data);
        ck_assert_str_eq(verdict.detail, "");
}
END_TEST

START_TEST(test_each_source_has_rules_of_its_own)
{
        struct record record = record_of(SPAN("d-1"), SPAN("{\"type\":\"invoice.pending\"}"));

        ck_assert_str_eq(reason_of(&record), "missing-kind");
        record = record_of(SPAN("d-1"), SPAN("{\"type\":\"invoice.pending\"}"));
        record.source = SPAN("billing"); /* the same id from another source is another delivery */
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        ck_assert_ptr_eq(verdict.rules, &billing);
        ck_assert_str_eq(verdict.topic->topic, "p.invoice.pending");
}
END_TEST

/* Several faults at once: the reason is the first that applies. */
static const struct {
        const char *reason;
        const char *detail;
        struct span body;
} bodies[] = {
    {"malformed-json", "empty", SPAN_OF("")},
    {"malformed-json", "UTF-8", SPAN_OF("{\"event\":\"\xff\"}")},
    {"malformed-json", "near byte", SPAN_OF("{\"terminal\":1,")},
    {"malformed-json", "object", SPAN_OF("[]")},
    {"malformed-json", "twice", SPAN_OF("{\"terminal\":1,\"event\":\"a\",\"event\":\"b\"}")},
    {"missing-kind", "/event", SPAN_OF("{}")},
    {"missing-kind", "/event", SPAN_OF("{\"terminal\":1}")},
    {"invalid-field", "/event", SPAN_OF("{\"event\":1,\"terminal\":1}")},
    {"unknown-kind", "invoice.lost", SPAN_OF("{\"event\":\"invoice.lost\"}")},
    {"unknown-kind", "invoice.lost", SPAN_OF("{\"terminal\":1,\"event\":\"invoice.lost\"}")},
    {"unknown-kind", "kind", SPAN_OF("{\"event\":\"\"}")},
    {"unknown-kind", "invoice", SPAN_OF("{\"event\":\"invoice.accepted\\u0000\"}")},
    {"unknown-kind", "reporting_batch", SPAN_OF("{\"event\":\"reporting_batch.*\"}")},
    {"invalid-field", "terminal must be", SPAN_OF("{\"event\":\"invoice.accepted\",\"terminal\":1}")},
    {"invalid-field", "data.error.code must be",
     SPAN_OF("{\"event\":\"invoice.accepted\",\"data\":{\"error\":{\"code\":1}}}")},
};

START_TEST(test_body_that_cannot_be_published_is_quarantined_with_the_reason)
{
        struct record record = record_of(SPAN("d-1"), bodies[_i].body);

        ck_assert_str_eq(reason_of(&record), bodies[_i].reason);
        ck_assert_ptr_nonnull(strstr(verdict.detail, bodies[_i].detail));
}
END_TEST

START_TEST(test_delivery_of_an_unknown_source_is_quarantined_before_its_body_counts)
{
        static const struct span sources[] = {SPAN_OF("invoicin"),
                                              SPAN_OF("invoicing2"),
                                              SPAN_OF("Invoicing"),
                                              SPAN_OF("invoicing\0"),
                                              {NULL, 0}};

        for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
                struct record record = record_of(SPAN("d-1"), SPAN("not JSON"));

                record.source = sources[i];
                record.replay_of = SPAN("d-0");
                ck_assert_str_eq(reason_of(&record), "unknown-source");
        }
}
END_TEST

START_TEST(test_record_without_a_key_is_quarantined_each_time)
{
        for (int i = 0; i < 2; i++) {
                struct record record = record_of(NO_SPAN, (struct span)ACCEPTED);

                ck_assert_str_eq(reason_of(&record), "unknown-source");
                record = record_of(SPAN(""), (struct span)ACCEPTED);
                ck_assert_str_eq(reason_of(&record), "unknown-source");
        }
        ck_assert_uint_eq(dedup_size(dedup), 0);
}
END_TEST

START_TEST(test_repeat_is_dropped_whatever_became_of_the_first)
{
        struct record record;

        for (int i = 0; i < 3; i++) {
                record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
                ck_assert_int_eq(decide(&record), i == 0 ? VERDICT_PUBLISH : VERDICT_DROP);
                record = record_of(SPAN("d-2"), SPAN("not JSON"));
                ck_assert_int_eq(decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
        }
        record.timestamp_ms += WINDOW;
        record.offset = next_offset++;
        ck_assert_int_eq(decide(&record), VERDICT_DROP);
        record.timestamp_ms += WINDOW + 1;
        record.offset = next_offset++;
        ck_assert_int_eq(decide(&record), VERDICT_QUARANTINE);
}
END_TEST

START_TEST(test_remembered_record_makes_the_next_a_repeat_but_not_itself)
{
        struct record record = record_of(SPAN("d-1"), (struct span)ACCEPTED);

        ck_assert_int_eq(judge_remember(judge, dedup, &record), 0);
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        ck_assert_int_eq(decide(&record), VERDICT_DROP);
        record = record_of(NO_SPAN, (struct span)ACCEPTED);
        ck_assert_int_eq(judge_remember(judge, dedup, &record), 0);
}
END_TEST

START_TEST(test_same_id_with_another_body_is_a_conflict_before_all_else)
{
        struct record record = record_of(SPAN("d-1"), (struct span)ACCEPTED);

        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        record = record_of(SPAN("d-1"), SPAN("not JSON"));
        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(reason_of(&record), "conflicting-body");
        record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        ck_assert_int_eq(decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_replayed_signature_is_quarantined_before_its_body_counts)
{
        struct record record = record_of(SPAN("d-1"), SPAN("not JSON"));

        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(reason_of(&record), "replayed-signature");
        ck_assert_ptr_nonnull(strstr(verdict.detail, "d-0"));
        record = record_of(SPAN("d-2"), (struct span)ACCEPTED);
        record.replay_of = SPAN("");
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_released_copy_comes_in_once_and_skips_the_replay_check)
{
        struct record record = record_of(SPAN("d-1"), (struct span)ACCEPTED);

        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(reason_of(&record), "replayed-signature");

        record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        record.released = SPAN("0-17");
        record.replay_of = SPAN("d-0");
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        record.offset = next_offset++;
        ck_assert_int_eq(decide(&record), VERDICT_DROP);

        record.released = SPAN("0-18");
        record.offset = next_offset++;
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        ck_assert_int_eq(decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_table_remains_valid_when_the_rules_change)
{
        static const struct event_rules *const fewer[] = {&invoicing};
        struct record first = record_of(SPAN("d-1"), (struct span)ACCEPTED), repeat, other;

        ck_assert_int_eq(decide(&first), VERDICT_PUBLISH);
        judge_set_rules(judge, fewer, ARRAY_LEN(fewer), topics);
        repeat = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        ck_assert_int_eq(decide(&repeat), VERDICT_DROP);
        other = record_of(SPAN("d-2"), (struct span)ACCEPTED);
        other.source = SPAN("billing");
        ck_assert_str_eq(reason_of(&other), "unknown-source");
}
END_TEST

START_TEST(test_released_copy_with_a_conflicting_body_is_published)
{
        struct record record = record_of(SPAN("d-1"), SPAN("{\"event\":\"invoice.pending\"}"));

        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        ck_assert_str_eq(reason_of(&record), "conflicting-body");
        record = record_of(SPAN("d-1"), (struct span)ACCEPTED);
        record.released = SPAN("0-17");
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        record = record_of(SPAN("d-2"), SPAN("still not JSON"));
        record.released = SPAN("0-19");
        ck_assert_str_eq(reason_of(&record), "malformed-json");
}
END_TEST

static const struct {
        enum event_key from;
        const char *pointer;
        const char *key;
} keys[] = {
    {EVENT_KEY_KIND, NULL, "invoice.accepted"},
    {EVENT_KEY_DELIVERY_ID, NULL, "d-1"},
    {EVENT_KEY_WEBHOOK_ID, NULL, "w-1"},
    {EVENT_KEY_POINTER, "/id", "INV-1"},
    {EVENT_KEY_POINTER, "/n", "17"},
    {EVENT_KEY_POINTER, "/none", "d-1"},
    {EVENT_KEY_POINTER, "/empty", "d-1"},
    {EVENT_KEY_POINTER, "/null", "d-1"},
    {EVENT_KEY_POINTER, "/object", "d-1"},
    {EVENT_KEY_POINTER, "/true", "d-1"},
};

START_TEST(test_key_is_what_the_rules_name_or_else_the_delivery_id)
{
        struct record record =
            record_of(SPAN("d-1"),
                      SPAN("{\"event\":\"invoice.accepted\",\"id\":\"INV-1\",\"n\":17,\"empty\":\"\","
                           "\"null\":null,\"object\":{},\"true\":true}"));

        invoicing.key_from = keys[_i].from;
        if (keys[_i].pointer != NULL)
                set_pointer(&invoicing.key, keys[_i].pointer);
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        ck_assert_uint_eq(verdict.key.len, strlen(keys[_i].key));
        ck_assert_mem_eq(verdict.key.data, keys[_i].key, verdict.key.len);
}
END_TEST

START_TEST(test_key_without_a_webhook_id_is_the_delivery_id)
{
        struct record record = record_of(SPAN("d-1"), (struct span)ACCEPTED);

        invoicing.key_from = EVENT_KEY_WEBHOOK_ID;
        record.webhook_id = NO_SPAN;
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        assert_span(verdict.key, "d-1");
}
END_TEST

START_TEST(test_subject_is_told_when_it_is_a_string_that_is_not_empty)
{
        struct record record = record_of(SPAN("d-1"), (struct span)ACCEPTED);

        set_pointer(&invoicing.subject, "/id");
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        assert_span(verdict.subject, "INV-1");
        record = record_of(SPAN("d-2"), SPAN("{\"event\":\"invoice.accepted\",\"id\":\"\"}"));
        ck_assert_int_eq(decide(&record), VERDICT_PUBLISH);
        ck_assert_ptr_null(verdict.subject.data);
}
END_TEST

START_TEST(test_long_kind_is_shown_in_part_and_cut_between_characters)
{
        char body[10100] = "{\"event\":\"";
        size_t len = strlen(body);

        body[len++] = 'x'; /* so that a cut after an even number of bytes falls into a character */
        for (; len < 10000; len += 2)
                memcpy(body + len, "\xc3\xa4", 2);
        memcpy(body + len, "\"}", 2);
        len += 2;
        for (int i = 0; i < 2; i++) {
                struct record record = record_of(SPAN("d-1"), (struct span){body, len});

                record.key = i == 0 ? SPAN("d-1") : SPAN("d-2");
                ck_assert_str_eq(reason_of(&record), "unknown-kind");
                ck_assert_ptr_nonnull(strstr(verdict.detail, "\xc3\xa4\xc3\xa4"));
                memmove(body + 10, body + 11, len - 11);
                len--;
        }
}
END_TEST

START_TEST(test_reasons_have_the_names_of_the_quarantine_header)
{
        static const char *const names[QUARANTINE_N_REASONS] = {"malformed-json",   "missing-kind",
                                                                "unknown-kind",     "invalid-field",
                                                                "conflicting-body", "replayed-signature",
                                                                "unknown-source",   "unpublishable"};

        for (int i = 0; i < QUARANTINE_N_REASONS; i++)
                ck_assert_str_eq(judge_reason_name((enum quarantine_reason)i), names[i]);
}
END_TEST

START_TEST(test_judge_free_of_nothing_is_harmless)
{
        judge_free(NULL);
}
END_TEST

Suite *
suite_judge(void)
{
        Suite *suite = suite_create("judge");
        TCase *tcase = tcase_create("judge");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_add_test(tcase, test_genuine_delivery_is_published_to_its_kinds_topic);
        tcase_add_test(tcase, test_each_source_has_rules_of_its_own);
        tcase_add_loop_test(tcase, test_body_that_cannot_be_published_is_quarantined_with_the_reason, 0,
                            ARRAY_LEN(bodies));
        tcase_add_test(tcase, test_delivery_of_an_unknown_source_is_quarantined_before_its_body_counts);
        tcase_add_test(tcase, test_record_without_a_key_is_quarantined_each_time);
        tcase_add_test(tcase, test_repeat_is_dropped_whatever_became_of_the_first);
        tcase_add_test(tcase, test_remembered_record_makes_the_next_a_repeat_but_not_itself);
        tcase_add_test(tcase, test_same_id_with_another_body_is_a_conflict_before_all_else);
        tcase_add_test(tcase, test_replayed_signature_is_quarantined_before_its_body_counts);
        tcase_add_test(tcase, test_released_copy_comes_in_once_and_skips_the_replay_check);
        tcase_add_test(tcase, test_table_remains_valid_when_the_rules_change);
        tcase_add_test(tcase, test_released_copy_with_a_conflicting_body_is_published);
        tcase_add_loop_test(tcase, test_key_is_what_the_rules_name_or_else_the_delivery_id, 0,
                            ARRAY_LEN(keys));
        tcase_add_test(tcase, test_key_without_a_webhook_id_is_the_delivery_id);
        tcase_add_test(tcase, test_subject_is_told_when_it_is_a_string_that_is_not_empty);
        tcase_add_test(tcase, test_long_kind_is_shown_in_part_and_cut_between_characters);
        tcase_add_test(tcase, test_reasons_have_the_names_of_the_quarantine_header);
        tcase_add_test(tcase, test_judge_free_of_nothing_is_harmless);
        suite_add_tcase(suite, tcase);
        return suite;
}
