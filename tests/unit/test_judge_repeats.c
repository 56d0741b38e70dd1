#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "judging.h"
#include "suites.h"

START_TEST(test_repeat_is_dropped_whatever_became_of_the_first)
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

START_TEST(test_remembered_record_makes_the_next_a_repeat_but_not_itself)
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

START_TEST(test_same_id_with_another_body_is_a_conflict_before_all_else)
{
        struct record record = judging_record(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = judging_record(SPAN("d-1"), SPAN("not JSON"));
        ck_assert_str_eq(judging_reason(&record), "conflicting-body");
        record = judging_record(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_replayed_signature_is_quarantined_before_its_body_counts)
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

START_TEST(test_replay_leaves_the_id_that_it_claims_free)
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

START_TEST(test_replay_that_was_only_remembered_leaves_the_id_free_too)
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

START_TEST(test_replay_is_quarantined_once_for_each_id_and_body)
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

START_TEST(test_replay_after_the_delivery_itself_is_a_repeat_when_the_body_is_the_same)
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

START_TEST(test_released_copy_comes_in_once_and_skips_the_replay_check)
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

Suite *
suite_judge_repeats(void)
{
        Suite *suite = suite_create("judge_repeats");
        TCase *tcase = tcase_create("judge_repeats");

        tcase_add_checked_fixture(tcase, judging_setup, judging_teardown);
        tcase_add_test(tcase, test_repeat_is_dropped_whatever_became_of_the_first);
        tcase_add_test(tcase, test_remembered_record_makes_the_next_a_repeat_but_not_itself);
        tcase_add_test(tcase, test_same_id_with_another_body_is_a_conflict_before_all_else);
        tcase_add_test(tcase, test_replayed_signature_is_quarantined_before_its_body_counts);
        tcase_add_test(tcase, test_replay_leaves_the_id_that_it_claims_free);
        tcase_add_test(tcase, test_replay_that_was_only_remembered_leaves_the_id_free_too);
        tcase_add_test(tcase, test_replay_is_quarantined_once_for_each_id_and_body);
        tcase_add_test(tcase, test_replay_after_the_delivery_itself_is_a_repeat_when_the_body_is_the_same);
        tcase_add_test(tcase, test_released_copy_comes_in_once_and_skips_the_replay_check);
        tcase_add_test(tcase, test_table_remains_valid_when_the_rules_change);
        tcase_add_test(tcase, test_released_copy_with_a_conflicting_body_is_published);
        suite_add_tcase(suite, tcase);
        return suite;
}
