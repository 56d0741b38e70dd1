#include <check.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "dedup/state.h"
#include "disk.h"
#include "scratch.h"
#include "suites.h"

/* What the files of a partition are for after a restart, or when the disk fails. */

#define WINDOW_MS 16000 /* slices of a second */
#define START_MS INT64_C(1795230240000)

static const char *directory;
static struct state *state;
static struct dedup *table;
static int64_t next; /* offset */

static void
open_state(void)
{
        struct error error;

        state = state_open(directory, "deliveries", &error);
        ck_assert_msg(state != NULL, "%s", state == NULL ? error.text : "");
}

static void
begin_table(void)
{
        table = dedup_new(WINDOW_MS, DEDUP_COMPLETE);
        ck_assert_ptr_nonnull(table);
        dedup_begin_at(table, 0);
}

static void
set_up(void)
{
        scratch_setup();
        directory = scratch_path("state");
        next = 0;
        open_state();
        begin_table();
}

static void
tear_down(void)
{
        dedup_free(table);
        state_close(state);
        scratch_teardown();
}

static const uint8_t *
identity(int64_t offset)
{
        static uint8_t made[DEDUP_IDENTITY_SIZE];

        for (size_t i = 0; i < sizeof(made); i++)
                made[i] = (uint8_t)((uint64_t)offset * UINT64_C(0x9e3779b97f4a7c15) >> 8 * (i % 8));
        return made;
}

/* The next record, at a time after the start. */
static void
put(int64_t time_ms)
{
        ck_assert_int_eq(dedup_remember(table, identity(next), 1, next, START_MS + time_ms), 0);
        next++;
}

static struct dedup *
find_table(void *arg, int32_t partition, uint64_t number)
{
        (void)arg;
        return partition == 0 && number == dedup_number(table) ? table : NULL;
}

/* Write everything, and let the thread complete all that has begun. */
static void
save(void)
{
        do {
                state_take_results(state, find_table, NULL);
                state_tend(state, 0, table, next, 1);
        } while (dedup_is_busy(table));
}

/* Return whether a new table has been filled from files. */
static int
restore(void)
{
        const struct state_wanted wanted = {.to = next, .complete_ms = INT64_MAX};
        int64_t from;

        dedup_free(table);
        begin_table();
        return state_restore(state, &wanted, table, &from);
}

static void
restart(void)
{
        state_close(state);
        open_state();
}

START_TEST(test_doubtful_records_are_doubtful_after_a_restart)
{
        put(0);
        save();
        ck_assert(restore());
        ck_assert(!dedup_has_doubtful(table));
        next--;
        put(0); /* the log is the same */
        dedup_note_doubtful(table);
        put(1);
        save();
        put(2);
        save();
        restart();
        ck_assert(restore());
        ck_assert_uint_eq(dedup_files(table).n, 3);
        ck_assert(dedup_has_doubtful(table));
}
END_TEST

START_TEST(test_files_that_cannot_be_deleted_are_not_used_again)
{
        put(0);
        save();
        disk_undeletable = 1;
        state_discard(state, 0, "the test");
        ck_assert(!restore());
        disk_undeletable = 0;
        ck_assert(!restore());
        put(1);
        save();
        ck_assert(restore());
}
END_TEST

static size_t
n_files(void)
{
        char *names[300];
        size_t n;

        restart(); /* all has been deleted that was to be */
        n = scratch_list(directory, ".run", names, ARRAY_LEN(names));
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        return n;
}

START_TEST(test_record_of_a_wrong_clock_keeps_no_later_files)
{
        put(1000 * 60 * 60);
        save();
        for (int64_t second = 0; second < 200; second++) {
                put(1000 * second);
                dedup_expire(table, START_MS + 1000 * second);
                save();
        }
        ck_assert_uint_lt(dedup_files(table).n, 40);
        ck_assert_uint_lt(dedup_size(table), 40);
        ck_assert_uint_eq(n_files(), dedup_files(table).n);
}
END_TEST

START_TEST(test_merged_file_of_expired_ones_is_deleted)
{
        put(0);
        save();
        put(1);
        save();
        put(5000);
        state_tend(state, 0, table, next, 1);
        while (dedup_is_busy(table))
                state_take_results(state, find_table, NULL);
        state_tend(state, 0, table, next, 1);
        ck_assert(dedup_is_busy(table));
        dedup_expire(table, START_MS + 18500);
        save();
        ck_assert_uint_eq(dedup_files(table).n, 1);
        ck_assert_uint_eq(n_files(), 1);
}
END_TEST

Suite *
suite_state(void)
{
        Suite *suite = suite_create("state");
        TCase *tcase = tcase_create("state");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, test_doubtful_records_are_doubtful_after_a_restart);
        tcase_add_test(tcase, test_files_that_cannot_be_deleted_are_not_used_again);
        tcase_add_test(tcase, test_record_of_a_wrong_clock_keeps_no_later_files);
        tcase_add_test(tcase, test_merged_file_of_expired_ones_is_deleted);
        suite_add_tcase(suite, tcase);
        return suite;
}
