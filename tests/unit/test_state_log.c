#include <check.h>
#include <stdlib.h>

#include "log_reader.h"
#include "scratch.h"
#include "suites.h"

/* Dedup tables with files, against the definition. */

/* Read logs with a state directory. */
static void
try_state(uint64_t seed, int64_t skew_share, int with_jumps, int may_damage)
{
        struct reader *reader = calloc(1, sizeof(*reader));
        const char *directory = scratch_path("state");
        size_t n_restored = 0, n_damaged = 0, n_found = 0, n_merged = 0;

        ck_assert_ptr_nonnull(reader);
        for (uint64_t i = 0; i < 5; i++) {
                struct error error;
                struct state *state = state_open(directory, "deliveries", &error);

                ck_assert_msg(state != NULL, "%s", state == NULL ? error.text : "");
                *reader = (struct reader){.random = (seed * 5 + i) * UINT64_C(0x9e3779b97f4a7c15) + 1,
                                          .needed_ms = INT64_MAX,
                                          .state = state,
                                          .directory = directory,
                                          .may_damage = may_damage};
                reader->window_ms = 160 + reader_dice(reader, 50000);
                reader_write_log(reader, skew_share == 0 ? 0 : reader->window_ms / skew_share, with_jumps);
                reader_restore(reader, 0);
                reader_read_log(reader);
                ck_assert_uint_eq(state_failures(state) > 0 && !may_damage, 0);
                dedup_free(reader->dedup);
                state_close(state);
                n_restored += reader->n_restored;
                n_damaged += reader->n_damaged;
                n_found += reader->n_found;
                n_merged += reader->n_merged;
        }
        ck_assert_uint_gt(n_restored, 5);
        if (!may_damage) {
                ck_assert_uint_gt(n_merged, 0);
        } else {
                ck_assert_uint_gt(n_damaged, 20);
                ck_assert_uint_gt(n_found, 0);
        }
        free(reader);
}

START_TEST(test_answers_from_files_follow_the_definition)
{
        try_state((uint64_t)_i + 3000, _i % 2 == 0 ? 0 : 16, _i % 3 == 2, 0);
}
END_TEST

START_TEST(test_damaged_files_are_not_believed)
{
        try_state((uint64_t)_i + 4000, _i % 2 == 0 ? 0 : 16, 0, 1);
}
END_TEST

Suite *
suite_state_log(void)
{
        Suite *suite = suite_create("state_log");
        TCase *tcase = tcase_create("state_log");

        tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
        tcase_set_timeout(tcase, 120);
        tcase_add_loop_test(tcase, test_answers_from_files_follow_the_definition, 0, 6);
        tcase_add_loop_test(tcase, test_damaged_files_are_not_believed, 0, 6);
        suite_add_tcase(suite, tcase);
        return suite;
}
