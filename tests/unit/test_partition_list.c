#include "router/partition_list.h"

#include <string.h>

#include "logged.h"
#include "router/recheck.h"
#include "suites.h"

START_TEST(test_partition_moves_with_its_table_and_without_a_position)
{
        struct partition_list from = {0}, to = {0};
        struct partition *partition = partition_add(&from, 3), *other = partition_add(&from, 4);

        partition->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition->stage = PARTITION_POSITIONED;
        partition->next = partition->decide_from = partition->known_to = 10;
        partition->awaits_turn = 1;
        ck_assert_int_eq(partition_move(&from, &to, partition, 5000), 0);
        ck_assert_ptr_null(partition_find(&from, 3));
        ck_assert_ptr_eq(partition_find(&from, 4), other);
        ck_assert_ptr_eq(partition_find(&to, 3), partition);
        ck_assert_ptr_nonnull(partition->dedup);
        ck_assert_int_eq(partition->stage, PARTITION_UNPOSITIONED);
        ck_assert_int_eq(partition->retry_ms, 5000);
        ck_assert(!partition->awaits_turn);
        /* What is not committed may be lost with its log. */
        partition->next = partition->known_to = 12;
        ck_assert_int_eq(partition_move(&to, &from, partition, 6000), 0);
        ck_assert_ptr_null(partition->dedup);
        ck_assert_int_eq(partition->next, 10);
        ck_assert_uint_eq(to.n, 0);
        partition_clear(&from);
        partition_clear(&to);
}
END_TEST

START_TEST(test_followed_partition_expects_nothing_beyond_the_committed_offset)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 3);

        partition->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition->is_followed = 1;
        partition->stage = PARTITION_POSITIONED;
        partition->decide_from = 10;
        partition->next = partition->reached = 8;
        ck_assert_int_eq(partition_state(partition, 0), PARTITION_STANDBY);
        partition_followed(partition);
        ck_assert_int_eq(partition->expired_from, 0); /* not there yet */
        ck_assert(!partition_note_log_end(partition, 20, 5000, 5000));
        ck_assert(!partition_note_log_end(partition, 20, 10000, 10000));
        ck_assert(partition_note_log_end(partition, 20, 60000, 60000)); /* two records do not come */
        partition_settle(partition);
        partition_advance(partition, 8, 7000);
        partition_advance(partition, 9, 7000);
        ck_assert(!partition_note_log_end(partition, 20, 65000, 65000));
        ck_assert(!partition_note_log_end(partition, 20, 120000, 120000));
        partition_followed(partition);
        ck_assert_int_eq(partition->expired_from, 10);
        ck_assert_int_eq(partition_open(partition), 0);
        partition_clear(&list);
}
END_TEST

START_TEST(test_partitions_that_ask_for_their_position_in_an_outage_log_one_line)
{
        struct partition_list list = {0};
        const char *log;

        logged_setup();
        for (int i = 0; i < 12; i++)
                recheck(i < 6 ? partition_add(&list, i) : partition_find(&list, i - 6), "a fetch failed");
        log = logged_read();
        ck_assert_ptr_nonnull(strstr(log, " info asking for the position again partition=0 "));
        ck_assert_ptr_eq(strchr(log, '\n'), strrchr(log, '\n'));
        logged_teardown();
        partition_clear(&list);
}
END_TEST

Suite *
suite_partition_list(void)
{
        Suite *suite = suite_create("partition_list");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_partition_moves_with_its_table_and_without_a_position);
        tcase_add_test(all, test_followed_partition_expects_nothing_beyond_the_committed_offset);
        tcase_add_test(all, test_partitions_that_ask_for_their_position_in_an_outage_log_one_line);
        suite_add_tcase(suite, all);
        return suite;
}
