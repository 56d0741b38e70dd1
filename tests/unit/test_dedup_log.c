#include <check.h>
#include <stdlib.h>

#include "log_reader.h"
#include "suites.h"

/* Dedup tables in memory, against the definition. */

static void
try_logs(uint64_t seed, int64_t shortest_window_ms, int with_skew, int with_jumps)
{
        struct reader *reader = calloc(1, sizeof(*reader));
        size_t n_repeats = 0, n_conflicts = 0, n_reread = 0, n_uncovered = 0;

        ck_assert_ptr_nonnull(reader);
        for (int i = 0; i < 20; i++) {
                *reader =
                    (struct reader){.random = (seed * 20 + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) + 1,
                                    .needed_ms = INT64_MAX};
                reader->window_ms = shortest_window_ms + reader_dice(reader, 1 + reader_dice(reader, 5000));
                reader_restore(reader, 0);
                reader_write_log(reader, with_skew ? reader->window_ms / 16 : 0, with_jumps);
                reader_read_log(reader);
                dedup_free(reader->dedup);
                n_repeats += reader->n_repeats;
                n_conflicts += reader->n_conflicts;
                n_reread += reader->n_reread;
                n_uncovered += reader->n_uncovered;
        }
        /* Check that the logs produce all of these cases. */
        ck_assert_uint_gt(n_repeats, 100);
        ck_assert_uint_gt(n_conflicts, 20);
        ck_assert_uint_gt(n_reread, 1000);
        ck_assert(with_jumps ? n_uncovered > 20 : n_uncovered == 0);
        free(reader);
}

START_TEST(test_answers_follow_the_definition_through_rewinds_and_restarts)
{
        try_logs((uint64_t)_i, 16, 0, 0);
}
END_TEST

START_TEST(test_answers_follow_the_definition_for_very_short_windows)
{
        struct reader *reader = calloc(1, sizeof(*reader));

        ck_assert_ptr_nonnull(reader);
        for (int64_t window_ms = 1; window_ms < 40; window_ms++) {
                *reader = (struct reader){.random = (uint64_t)window_ms,
                                          .window_ms = window_ms,
                                          .needed_ms = INT64_MAX};
                reader_restore(reader, 0);
                reader_write_log(reader, 0, 0);
                reader_read_log(reader);
                dedup_free(reader->dedup);
        }
        free(reader);
}
END_TEST

START_TEST(test_answers_follow_the_definition_when_clocks_differ_by_a_slice)
{
        try_logs((uint64_t)_i + 1000, 160, 1, 0);
}
END_TEST

START_TEST(test_answers_follow_the_definition_when_a_clock_is_wrong_by_several_windows)
{
        try_logs((uint64_t)_i + 2000, 160, 0, 1);
}
END_TEST

Suite *
suite_dedup_log(void)
{
        Suite *suite = suite_create("dedup_log");
        TCase *tcase = tcase_create("dedup_log");

        tcase_set_timeout(tcase, 60);
        tcase_add_loop_test(tcase, test_answers_follow_the_definition_through_rewinds_and_restarts, 0, 10);
        tcase_add_test(tcase, test_answers_follow_the_definition_for_very_short_windows);
        tcase_add_loop_test(tcase, test_answers_follow_the_definition_when_clocks_differ_by_a_slice, 0, 10);
        tcase_add_loop_test(tcase,
                            test_answers_follow_the_definition_when_a_clock_is_wrong_by_several_windows, 0,
                            10);
        suite_add_tcase(suite, tcase);
        return suite;
}
