#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "crash_states.h"
#include "disk.h"
#include "logged.h"
#include "scratch.h"
#include "spool_run.h"
#include "suites.h"

/* crash_states.h says which states are checked, and for what. */

static void
setup(void)
{
        scratch_setup();
        logged_setup();
}

static void
teardown(void)
{
        logged_teardown();
        scratch_teardown();
}

/* Run the writer, check the states, and print what they have shown. */
static struct crash_found
run(unsigned variants, int drains)
{
        const char *path = scratch_path("spool");
        struct crash_found found;
        char *command = mem_printf("rm -r %s", path);

        ck_assert_int_eq(mkdir(path, 0700), 0);
        run_record(path, drains);
        found = crash_states_check(variants, 1);
        printf("%zu states (%zu different) of %zu operations on %u files: %zu lost, %zu changed, "
               "%zu taken for damage\n",
               found.states, found.different, disk_n_ops, disk_n_files, found.lost, found.changed,
               found.damaged);
        disk_forget();
        ck_assert_int_eq(system(command), 0);
        free(command);
        return found;
}

static void
expect_nothing(const struct crash_found *found)
{
        ck_assert_uint_eq(found->lost, 0);
        ck_assert_uint_eq(found->changed, 0);
        ck_assert_uint_eq(found->damaged, 0);
}

START_TEST(test_each_state_after_a_crash_has_all_deliveries_that_were_answered)
{
        size_t different = 0;

        /* The threads form other groups each time. */
        while (different < 5000) {
                struct crash_found found = run(150, 0);

                ck_assert_uint_gt(found.different, 0);
                ck_assert_uint_eq(run_count_answered(), RUN_DELIVERIES);
                expect_nothing(&found);
                different += found.different;
        }
}
END_TEST

START_TEST(test_crashes_while_segments_are_drained_lose_nothing)
{
        struct crash_found found = run(20, 1);

        ck_assert_uint_eq(run_count_answered(), RUN_DELIVERIES);
        expect_nothing(&found);
}
END_TEST

START_TEST(test_crashes_between_short_writes_lose_nothing)
{
        struct crash_found found;

        disk_writes_at_once = 700;
        found = run(10, 0);
        ck_assert_uint_eq(run_count_answered(), RUN_DELIVERIES);
        expect_nothing(&found);
}
END_TEST

START_TEST(test_answers_before_the_sync_are_found)
{
        disk_ignores_syncs = 1;
        ck_assert_uint_gt(run(10, 0).lost, 0);
}
END_TEST

START_TEST(test_missing_sync_of_the_directory_is_found)
{
        disk_ignores_directory_syncs = 1;
        ck_assert_uint_gt(run(10, 0).lost, 0);
}
END_TEST

/* After a failed sync, a later one of the same file may succeed although nothing was written. */
static void
expect_failed_syncs_to_be_last(void)
{
        uint8_t has_failed[DISK_MAX_FILES] = {0};

        for (size_t p = 0; p < disk_n_ops; p++) {
                if (disk_ops[p].kind == DISK_SYNC || disk_ops[p].kind == DISK_WRITE)
                        ck_assert(!has_failed[disk_ops[p].file]);
                has_failed[disk_ops[p].file] |= disk_ops[p].kind == DISK_SYNC_FAILED;
        }
}

/* Let one call of the disk fail; the writer goes on with another segment after its pause. */
START_TEST(test_failing_disk_loses_nothing_that_was_answered)
{
        const char *path = scratch_path("spool");
        struct crash_found found;
        char *command = mem_printf("rm -r %s", path);

        ck_assert_int_eq(mkdir(path, 0700), 0);
        disk_fails_at = _i;
        disk_fails_with = _i % 2 == 0 ? EIO : ENOSPC;
        run_record(path, 0);
        ck_assert_int_gt(disk_n_calls, _i);
        expect_failed_syncs_to_be_last();
        found = crash_states_check(8, (unsigned)_i);
        expect_nothing(&found);
        ck_assert_uint_gt(run_count_answered(), RUN_DELIVERIES / 2);
        disk_forget();
        ck_assert_int_eq(system(command), 0);
        free(command);
}
END_TEST

Suite *
suite_spool_crash(void)
{
        Suite *suite = suite_create("spool_crash");
        TCase *tcase = tcase_create("states"), *failing = tcase_create("failing");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_checked_fixture(failing, setup, teardown);
        tcase_set_timeout(tcase, 300);
        tcase_set_timeout(failing, 60);
        tcase_add_test(tcase, test_each_state_after_a_crash_has_all_deliveries_that_were_answered);
        tcase_add_test(tcase, test_crashes_while_segments_are_drained_lose_nothing);
        tcase_add_test(tcase, test_crashes_between_short_writes_lose_nothing);
        tcase_add_test(tcase, test_answers_before_the_sync_are_found);
        tcase_add_test(tcase, test_missing_sync_of_the_directory_is_found);
        tcase_add_loop_test(failing, test_failing_disk_loses_nothing_that_was_answered, 0, 24);
        suite_add_tcase(suite, tcase);
        suite_add_tcase(suite, failing);
        return suite;
}
