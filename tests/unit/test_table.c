#include "router/table.h"

#include "scratch.h"
#include "suites.h"

/* When a dedup table is of the log that is read, so that it may be kept, and written into files. */

#define WINDOW_MS 16000 /* slices of a second */

static struct state *state;
static struct partition_list partitions, followed;
static struct partition *partition;

static void
set_up(void)
{
        struct error error;

        scratch_setup();
        state = state_open(scratch_path("state"), "deliveries", &error);
        ck_assert_ptr_nonnull(state);
        partition = partition_add(&partitions, 0);
        ck_assert_ptr_nonnull(partition);
        partition->dedup = dedup_new(WINDOW_MS, DEDUP_COMPLETE);
        ck_assert_ptr_nonnull(partition->dedup);
        dedup_begin_at(partition->dedup, 0);
        partition->stage = PARTITION_POSITIONED;
        /* A half of what another router has committed is remembered, enough for a file. */
        for (int64_t offset = 0; offset < 500; offset++) {
                uint8_t identity[DEDUP_IDENTITY_SIZE] = {(uint8_t)offset, (uint8_t)(offset >> 8)};

                ck_assert_int_eq(dedup_remember(partition->dedup, identity, 1, offset, 100000 + offset * 10),
                                 0);
        }
        partition->next = partition->known_to = 500;
        partition->decide_from = 1000;
        partition->routed_ms = 110000;
}

static void
tear_down(void)
{
        partition_clear(&partitions);
        state_close(state);
        scratch_teardown();
}

/* Let another router commit, and apply the position. */
static void
commit_elsewhere(int64_t offset)
{
        const struct position position = {.decide_from = offset, .routed_ms = 120000, .low = 0};

        ck_assert(table_serves(&position, partition));
        table_confirm(&position, partition);
        partition->decide_from = offset;
        partition->routed_ms = position.routed_ms;
}

START_TEST(test_record_that_proves_the_log_is_looked_for_until_it_is_read)
{
        commit_elsewhere(1200);
        ck_assert_int_eq(partition->anchor, 999);
        ck_assert_int_eq(partition->anchor_ms, 110000);
        commit_elsewhere(1300); /* which says nothing of the records below 1000 */
        ck_assert_int_eq(partition->anchor, 999);
        ck_assert_int_eq(partition->anchor_ms, 110000);
        ck_assert(!partition_confirms(partition, 999, 110001));
}
END_TEST

static int
is_written(void)
{
        table_tend(state, &partitions, &followed);
        return dedup_is_busy(partition->dedup);
}

START_TEST(test_table_is_written_while_it_is_restored)
{
        ck_assert(is_written());
}
END_TEST

START_TEST(test_table_that_may_be_of_two_logs_is_not_written)
{
        partition->is_continued = 1;
        ck_assert(!is_written());
        partition->decide_from = partition->bare_offset =
            500; /* set by a tool, which says no record's time */
        ck_assert(!is_written());
        partition->bare_offset = -1; /* the record before it was the routed one */
        ck_assert(is_written());
}
END_TEST

START_TEST(test_table_that_awaits_a_proof_of_the_log_is_not_written)
{
        commit_elsewhere(1200);
        ck_assert(!is_written());
        ck_assert(partition_confirms(partition, 999, 110000));
        ck_assert(is_written());
}
END_TEST

START_TEST(test_uncommitted_records_are_not_written)
{
        partition->decide_from = 400;
        ck_assert(!is_written());
        partition->next = 400;
        ck_assert(!is_written()); /* they are still in the table */
}
END_TEST

Suite *
suite_table(void)
{
        Suite *suite = suite_create("table");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_record_that_proves_the_log_is_looked_for_until_it_is_read);
        tcase_add_test(all, test_table_is_written_while_it_is_restored);
        tcase_add_test(all, test_table_that_may_be_of_two_logs_is_not_written);
        tcase_add_test(all, test_table_that_awaits_a_proof_of_the_log_is_not_written);
        tcase_add_test(all, test_uncommitted_records_are_not_written);
        suite_add_tcase(suite, all);
        return suite;
}
