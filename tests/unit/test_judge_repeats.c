#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "judging.h"
#include "suites.h"

START_TEST(test_repeat_is_dropped_whatever_the_first_verdict)
{
        struct record record;

        for (int i = 0; i < 3; i++) {
                record = judging_record(SPAN("d-1"), ACCEPTED);
                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_PUBLISH : VERDICT_DROP);
                record = judging_record(SPAN("d-2"), SPAN("not JSON"));
                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
        }
        record.timestamp_ms += JUDGING_WINDOW;
        record.offset = judging_offset();
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record.timestamp_ms += JUDGING_WINDOW + 1;
        record.offset = judging_offset();
        ck_assert_int_eq(judging_decide(&record), VERDICT_QUARANTINE);
}
END_TEST

START_TEST(test_remembered_record_makes_later_copies_repeats_but_not_itself)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = judging_record(NO_SPAN, ACCEPTED);
        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
}
END_TEST

START_TEST(test_conflicting_body_is_checked_before_its_syntax)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), SPAN("not JSON"));
        ck_assert_str_eq(judging_reason(&record), "conflicting-body");
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_conflicting_body_is_quarantined_once)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), PENDING);
        ck_assert_str_eq(judging_reason(&record), "conflicting-body");
        record = judging_record(SPAN("d-1"), PENDING);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_remembered_conflicting_body_is_a_repeat)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
        record = judging_record(SPAN("d-1"), PENDING);
        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
        record = judging_record(SPAN("d-1"), PENDING);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_replayed_signature_is_checked_before_the_body)
{
        struct record record = judging_record(SPAN("d-1"), SPAN("not JSON"));

        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(judging_reason(&record), "replayed-signature");
        ck_assert_ptr_nonnull(strstr(judging_verdict.detail, "d-0"));
        record = judging_record(SPAN("d-2"), ACCEPTED);
        record.replay_of = SPAN("");
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_replay_does_not_claim_its_delivery_id)
{
        struct record record = judging_replay(SPAN("d-1"), PENDING);

        ck_assert_str_eq(judging_reason(&record), "replayed-signature");
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = judging_record(SPAN("d-1"), PENDING);
        ck_assert_str_eq(judging_reason(&record), "conflicting-body");
}
END_TEST

START_TEST(test_remembered_replay_does_not_claim_its_delivery_id)
{
        struct record first = judging_replay(SPAN("d-1"), ACCEPTED), record;

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &first), 0);
        record = judging_replay(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = judging_record(SPAN("d-1"), PENDING);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        ck_assert_str_eq(judging_reason(&first), "replayed-signature"); /* as after a rewind */
}
END_TEST

START_TEST(test_replay_is_quarantined_once_per_id_and_body)
{
        for (int i = 0; i < 3; i++) {
                struct record record = judging_replay(SPAN("d-1"), ACCEPTED);

                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
                record = judging_replay(SPAN("d-1"), SPAN("another captured body"));
                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
                record = judging_replay(SPAN("d-2"), ACCEPTED);
                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
        }
}
END_TEST

START_TEST(test_replay_of_a_published_delivery_with_the_same_body_is_a_repeat)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED), rewound;

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_replay(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        rewound = record;
        record = judging_replay(SPAN("d-1"), SPAN("not JSON"));
        ck_assert_str_eq(judging_reason(&record), "replayed-signature");
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        ck_assert_int_eq(judging_decide(&rewound), VERDICT_DROP);
}
END_TEST

START_TEST(test_released_copy_is_published_once_without_replay_check)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(judging_reason(&record), "replayed-signature");

        record = judging_record(SPAN("d-1"), ACCEPTED);
        record.released = SPAN("0-17");
        record.replay_of = SPAN("d-0");
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record.offset = judging_offset();
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);

        record.released = SPAN("0-18");
        record.offset = judging_offset();
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_table_remains_valid_when_the_rules_change)
{
        static const struct event_rules *const fewer[] = {&judging_invoicing};
        struct record first = judging_record(SPAN("d-1"), ACCEPTED), repeat, other;

        ck_assert_int_eq(judging_decide(&first), VERDICT_PUBLISH);
        judge_set_rules(judging_judge, fewer, ARRAY_LEN(fewer), judging_topics);
        repeat = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&repeat), VERDICT_DROP);
        other = judging_record(SPAN("d-2"), ACCEPTED);
        other.source = SPAN("billing");
        ck_assert_str_eq(judging_reason(&other), "unknown-source");
}
END_TEST

START_TEST(test_released_copy_with_a_conflicting_body_is_published)
{
        struct record record = judging_record(SPAN("d-1"), PENDING);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_str_eq(judging_reason(&record), "conflicting-body");
        record = judging_record(SPAN("d-1"), ACCEPTED);
        record.released = SPAN("0-17");
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-2"), SPAN("still not JSON"));
        record.released = SPAN("0-19");
        ck_assert_str_eq(judging_reason(&record), "malformed-json");
}
END_TEST

#define LOG_SIZE 120

/*
 * A log of few ids and bodies, with replays and releases, over three windows; some timestamps go backwards.
 */
static void
make_log(unsigned seed, struct record log[LOG_SIZE])
{
        static const struct span ids[] = {SPAN_OF("d-1"), SPAN_OF("d-2"), SPAN_OF("d-3")};
        static const struct span places[] = {SPAN_OF("0-1"), SPAN_OF("0-2")};
        static const struct span bodies[] = {SPAN_OF("{\"event\":\"invoice.accepted\"}"),
                                             SPAN_OF("{\"event\":\"invoice.pending\"}"), SPAN_OF("not JSON")};
        int64_t now = JUDGING_NOW;

        for (size_t i = 0; i < LOG_SIZE; i++) {
                log[i] = judging_record(ids[rand_r(&seed) % 3], bodies[rand_r(&seed) % 3]);
                now += rand_r(&seed) % (3 * JUDGING_WINDOW / LOG_SIZE * 2);
                log[i].timestamp_ms = now - rand_r(&seed) % (JUDGING_WINDOW / 32);
                if (rand_r(&seed) % 3 == 0)
                        log[i].replay_of = SPAN("d-0");
                if (rand_r(&seed) % 4 == 0)
                        log[i].released = places[rand_r(&seed) % 2];
        }
}

/* Read back from dedup_restore_start(), remember records up to an offset, and decide from there on. */
static void
decide_from(const struct record log[LOG_SIZE], size_t cut, const enum verdict_action expected[LOG_SIZE])
{
        int64_t least = INT64_MAX, start;

        for (size_t i = cut; i < LOG_SIZE; i++)
                least = log[i].timestamp_ms < least ? log[i].timestamp_ms : least;
        start = dedup_restore_start(JUDGING_WINDOW, least);
        dedup_free(judging_dedup);
        judging_dedup = dedup_new(JUDGING_WINDOW, start);
        ck_assert_ptr_nonnull(judging_dedup);
        for (size_t i = 0; i < cut; i++) {
                if (log[i].timestamp_ms >= start)
                        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &log[i]), 0);
        }
        for (size_t i = cut; i < LOG_SIZE; i++) {
                ck_assert(dedup_covers(judging_dedup, log[i].timestamp_ms));
                ck_assert_msg(judging_decide(&log[i]) == expected[i], "record %zu, from %zu on", i, cut);
        }
}

START_TEST(test_decisions_do_not_depend_on_where_a_router_starts)
{
        enum verdict_action expected[LOG_SIZE];
        struct record log[LOG_SIZE];

        make_log((unsigned)_i + 1, log);
        for (size_t i = 0; i < LOG_SIZE; i++)
                expected[i] = judging_decide(&log[i]);
        for (size_t i = LOG_SIZE; i > 0; i--) /* rewound: the table knows the future */
                ck_assert_int_eq(judging_decide(&log[i - 1]), expected[i - 1]);
        for (size_t cut = 0; cut < LOG_SIZE; cut += 7)
                decide_from(log, cut, expected);
}
END_TEST

Suite *
suite_judge_repeats(void)
{
        Suite *suite = suite_create("judge_repeats");
        TCase *tcase = tcase_create("judge_repeats");

        tcase_add_checked_fixture(tcase, judging_setup, judging_teardown);
        tcase_add_test(tcase, test_repeat_is_dropped_whatever_the_first_verdict);
        tcase_add_test(tcase, test_remembered_record_makes_later_copies_repeats_but_not_itself);
        tcase_add_test(tcase, test_conflicting_body_is_checked_before_its_syntax);
        tcase_add_test(tcase, test_conflicting_body_is_quarantined_once);
        tcase_add_test(tcase, test_remembered_conflicting_body_is_a_repeat);
        tcase_add_test(tcase, test_replayed_signature_is_checked_before_the_body);
        tcase_add_test(tcase, test_replay_does_not_claim_its_delivery_id);
        tcase_add_test(tcase, test_remembered_replay_does_not_claim_its_delivery_id);
        tcase_add_test(tcase, test_replay_is_quarantined_once_per_id_and_body);
        tcase_add_test(tcase, test_replay_of_a_published_delivery_with_the_same_body_is_a_repeat);
        tcase_add_test(tcase, test_released_copy_is_published_once_without_replay_check);
        tcase_add_test(tcase, test_table_remains_valid_when_the_rules_change);
        tcase_add_test(tcase, test_released_copy_with_a_conflicting_body_is_published);
        tcase_add_loop_test(tcase, test_decisions_do_not_depend_on_where_a_router_starts, 0, 20);
        suite_add_tcase(suite, tcase);
        return suite;
}
