#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "judging.h"
#include "suites.h"

START_TEST(test_genuine_delivery_is_published_to_the_topic_of_its_kind)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        ck_assert_str_eq(judging_verdict.topic->topic, "p.invoice.accepted");
        ck_assert_ptr_eq(judging_verdict.rules, &judging_invoicing);
        assert_span(judging_verdict.kind, "invoice.accepted");
        assert_span(judging_verdict.key, "invoice.accepted");
        ck_assert_ptr_null(judging_verdict.subject.data);
        ck_assert_str_eq(judging_verdict.detail, "");
}
END_TEST

START_TEST(test_every_source_has_its_own_rules)
{
        struct record record = judging_record(SPAN("d-1"), SPAN("{\"type\":\"invoice.pending\"}"));

        ck_assert_str_eq(judging_reason(&record), "missing-kind");
        record = judging_record(SPAN("d-1"), SPAN("{\"type\":\"invoice.pending\"}"));
        record.source = SPAN("billing"); /* the same id from another source is another delivery */
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        ck_assert_ptr_eq(judging_verdict.rules, &judging_billing);
        ck_assert_str_eq(judging_verdict.topic->topic, "p.invoice.pending");
}
END_TEST

START_TEST(test_delivery_of_gatepost_doctor_is_recognised_and_not_published)
{
        struct record record = judging_record(SPAN("d-1"), SPAN("{\"event\":\"gatepost.doctor\"}"));

        ck_assert_int_eq(judging_decide(&record), VERDICT_TEST);
        record.offset++;
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = judging_record(SPAN("d-2"), SPAN("{\"type\":\"gatepost.doctor\"}"));
        record.source = SPAN("billing"); /* its kind is at another pointer */
        ck_assert_int_eq(judging_decide(&record), VERDICT_TEST);
}
END_TEST

START_TEST(test_forged_delivery_of_gatepost_doctor_is_quarantined)
{
        struct record record = judging_record(SPAN("d-1"), SPAN("{\"event\":\"gatepost.doctor\"}"));

        record.source = SPAN("no-such-source");
        ck_assert_str_eq(judging_reason(&record), "unknown-source");
        record = judging_record(SPAN("d-1"), SPAN("{\"event\":\"gatepost.doctor\"}"));
        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(judging_reason(&record), "replayed-signature");
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
    {"malformed-json", "duplicated", SPAN_OF("{\"terminal\":1,\"event\":\"a\",\"event\":\"b\"}")},
    {"missing-kind", "/event", SPAN_OF("{}")},
    {"missing-kind", "/event", SPAN_OF("{\"terminal\":1}")},
    {"invalid-field", "/event", SPAN_OF("{\"event\":1,\"terminal\":1}")},
    {"unknown-kind", "invoice.lost", SPAN_OF("{\"event\":\"invoice.lost\"}")},
    {"unknown-kind", "invoice.lost", SPAN_OF("{\"terminal\":1,\"event\":\"invoice.lost\"}")},
    {"unknown-kind", "kind", SPAN_OF("{\"event\":\"\"}")},
    {"unknown-kind", "gatepost.doctors", SPAN_OF("{\"event\":\"gatepost.doctors\"}")},
    {"unknown-kind", "invoice", SPAN_OF("{\"event\":\"invoice.accepted\\u0000\"}")},
    {"unknown-kind", "reporting_batch", SPAN_OF("{\"event\":\"reporting_batch.*\"}")},
    {"invalid-field", "terminal must be", SPAN_OF("{\"event\":\"invoice.accepted\",\"terminal\":1}")},
    {"invalid-field", "data.error.code must be",
     SPAN_OF("{\"event\":\"invoice.accepted\",\"data\":{\"error\":{\"code\":1}}}")},
};

START_TEST(test_record_with_an_overlong_key_or_header_is_quarantined)
{
        static char key[JUDGE_TEXT_MAX + 1];
        struct record record;

        memset(key, 'k', sizeof(key));
        record = judging_record((struct span){key, sizeof(key)}, ACCEPTED);
        ck_assert_str_eq(judging_reason(&record), "unknown-source");
        ck_assert_ptr_nonnull(strstr(judging_verdict.detail, "1025"));
        record = judging_record((struct span){key, sizeof(key) - 1}, ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), ACCEPTED);
        record.released = (struct span){key, sizeof(key)};
        ck_assert_str_eq(judging_reason(&record), "unknown-source");
        ck_assert_ptr_nonnull(strstr(judging_verdict.detail, "gatepost-released"));
}
END_TEST

START_TEST(test_invalid_body_is_quarantined_with_the_reason)
{
        struct record record = judging_record(SPAN("d-1"), bodies[_i].body);

        ck_assert_str_eq(judging_reason(&record), bodies[_i].reason);
        ck_assert_ptr_nonnull(strstr(judging_verdict.detail, bodies[_i].detail));
}
END_TEST

START_TEST(test_unknown_source_is_checked_before_the_body)
{
        static const struct span sources[] = {SPAN_OF("invoicin"),
                                              SPAN_OF("invoicing2"),
                                              SPAN_OF("Invoicing"),
                                              SPAN_OF("invoicing\0"),
                                              {NULL, 0}};

        for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
                struct record record = judging_record(SPAN("d-1"), SPAN("not JSON"));

                record.source = sources[i];
                record.replay_of = SPAN("d-0");
                ck_assert_str_eq(judging_reason(&record), "unknown-source");
        }
}
END_TEST

START_TEST(test_record_without_a_key_is_quarantined_every_time)
{
        for (int i = 0; i < 2; i++) {
                struct record record = judging_record(NO_SPAN, ACCEPTED);

                ck_assert_str_eq(judging_reason(&record), "unknown-source");
                record = judging_record(SPAN(""), ACCEPTED);
                ck_assert_str_eq(judging_reason(&record), "unknown-source");
        }
        ck_assert_uint_eq(dedup_size(judging_dedup), 0);
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

START_TEST(test_key_follows_the_rules_or_falls_back_to_the_delivery_id)
{
        struct record record =
            judging_record(SPAN("d-1"),
                           SPAN("{\"event\":\"invoice.accepted\",\"id\":\"INV-1\",\"n\":17,\"empty\":\"\","
                                "\"null\":null,\"object\":{},\"true\":true}"));

        judging_invoicing.key_from = keys[_i].from;
        if (keys[_i].pointer != NULL)
                judging_point(&judging_invoicing.key, keys[_i].pointer);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        ck_assert_uint_eq(judging_verdict.key.len, strlen(keys[_i].key));
        ck_assert_mem_eq(judging_verdict.key.data, keys[_i].key, judging_verdict.key.len);
}
END_TEST

START_TEST(test_key_without_a_webhook_id_is_the_delivery_id)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        judging_invoicing.key_from = EVENT_KEY_WEBHOOK_ID;
        record.webhook_id = NO_SPAN;
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        assert_span(judging_verdict.key, "d-1");
}
END_TEST

START_TEST(test_subject_is_set_if_it_is_a_non_empty_string)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        judging_point(&judging_invoicing.subject, "/id");
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        assert_span(judging_verdict.subject, "INV-1");
        record = judging_record(SPAN("d-2"), SPAN("{\"event\":\"invoice.accepted\",\"id\":\"\"}"));
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        ck_assert_ptr_null(judging_verdict.subject.data);
}
END_TEST

START_TEST(test_long_kind_is_truncated_at_a_character_boundary)
{
        char body[10100] = "{\"event\":\"";
        size_t len = strlen(body);

        body[len++] = 'x'; /* so that a cut after an even number of bytes falls into a character */
        for (; len < 10000; len += 2)
                memcpy(body + len, "\xc3\xa4", 2);
        memcpy(body + len, "\"}", 2);
        len += 2;
        for (int i = 0; i < 2; i++) {
                struct record record = judging_record(SPAN("d-1"), (struct span){body, len});

                record.key = i == 0 ? SPAN("d-1") : SPAN("d-2");
                ck_assert_str_eq(judging_reason(&record), "unknown-kind");
                ck_assert_ptr_nonnull(strstr(judging_verdict.detail, "\xc3\xa4\xc3\xa4"));
                memmove(body + 10, body + 11, len - 11);
                len--;
        }
}
END_TEST

START_TEST(test_reason_names_match_the_quarantine_header)
{
        static const char *const names[QUARANTINE_N_REASONS] = {"malformed-json",   "missing-kind",
                                                                "unknown-kind",     "invalid-field",
                                                                "conflicting-body", "replayed-signature",
                                                                "unknown-source",   "unverified",
                                                                "spooled-too-long", "unpublishable"};

        for (int i = 0; i < QUARANTINE_N_REASONS; i++)
                ck_assert_str_eq(judge_reason_name((enum quarantine_reason)i), names[i]);
}
END_TEST

START_TEST(test_judge_free_accepts_null)
{
        judge_free(NULL);
}
END_TEST

Suite *
suite_judge(void)
{
        Suite *suite = suite_create("judge");
        TCase *tcase = tcase_create("judge");

        tcase_add_checked_fixture(tcase, judging_setup, judging_teardown);
        tcase_add_test(tcase, test_genuine_delivery_is_published_to_the_topic_of_its_kind);
        tcase_add_test(tcase, test_delivery_of_gatepost_doctor_is_recognised_and_not_published);
        tcase_add_test(tcase, test_forged_delivery_of_gatepost_doctor_is_quarantined);
        tcase_add_test(tcase, test_record_with_an_overlong_key_or_header_is_quarantined);
        tcase_add_test(tcase, test_every_source_has_its_own_rules);
        tcase_add_loop_test(tcase, test_invalid_body_is_quarantined_with_the_reason, 0, ARRAY_LEN(bodies));
        tcase_add_test(tcase, test_unknown_source_is_checked_before_the_body);
        tcase_add_test(tcase, test_record_without_a_key_is_quarantined_every_time);
        tcase_add_loop_test(tcase, test_key_follows_the_rules_or_falls_back_to_the_delivery_id, 0,
                            ARRAY_LEN(keys));
        tcase_add_test(tcase, test_key_without_a_webhook_id_is_the_delivery_id);
        tcase_add_test(tcase, test_subject_is_set_if_it_is_a_non_empty_string);
        tcase_add_test(tcase, test_long_kind_is_truncated_at_a_character_boundary);
        tcase_add_test(tcase, test_reason_names_match_the_quarantine_header);
        tcase_add_test(tcase, test_judge_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
