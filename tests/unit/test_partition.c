#include "router/partition_list.h"
#include "suites.h"

START_TEST(test_records_are_accepted_in_order)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 3);

        partition->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition->next = partition->decide_from = 10;
        ck_assert(partition_accepts(partition, 10));
        ck_assert_int_eq((int)partition_open(partition), 0);
        partition_advance(partition, 10, 5000);
        ck_assert_int_eq((int)partition_open(partition), 1);
        partition_committed(partition);
        ck_assert_int_eq((int)partition->decide_from, 11);
        ck_assert_int_eq((int)partition_open(partition), 0);
        partition_clear(&list);
}
END_TEST

START_TEST(test_gap_is_accepted_only_if_seen_twice)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->next = 10;
        partition_advance(partition, 10, 0);
        ck_assert(!partition_accepts(partition, 12));
        partition_scan(partition, 12, 5000);
        ck_assert(!partition_ends_scan(partition, 5000));
        partition_scan(partition, 13, 5001);
        partition_scan(partition, 16, 5001);
        ck_assert(partition_ends_scan(partition, 5010)); /* read again from 11 */
        ck_assert(!partition_accepts(partition, 13));
        ck_assert(partition_accepts(partition, 12)); /* still nothing at 11 */
        partition_advance(partition, 12, 0);
        partition_advance(partition, 13, 0);
        ck_assert(partition_accepts(partition, 16));
        ck_assert(!partition_accepts(partition, 15));
        ck_assert(!partition_accepts(partition, 17));
        partition_clear(&list);
}
END_TEST

START_TEST(test_gap_is_remembered_until_the_log_changes)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        for (int i = 0; i < 3; i++) {
                partition->next = 11;
                partition_scan(partition, 13, 5000);
                ck_assert(partition_accepts(partition, 13));
                partition_void_position(partition, TROUBLE_NONE, NULL, 0, 5000);
                ck_assert(partition_accepts(partition, 13));
                if (i == 0)
                        partition_void_position(partition, TROUBLE_TRUNCATED, "", 0, 5000);
                else
                        partition_forget_table(partition, 5000);
                ck_assert(!partition_accepts(partition, 13));
        }
        partition_clear(&list);
}
END_TEST

START_TEST(test_record_of_another_origin_is_accepted_if_seen_twice)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        ck_assert(!partition_allows_change(partition, 11, 700));
        partition_void_position(partition, TROUBLE_NONE, NULL, 0, 5000);
        partition_note_change(partition, 11, 700);
        ck_assert(partition_allows_change(partition, 11, 700));
        ck_assert(!partition_allows_change(partition, 11, 701));
        ck_assert(!partition_allows_change(partition, 12, 700));
        partition_rewind(partition);
        ck_assert(!partition_allows_change(partition, 11, 700));
        partition_note_change(partition, 11, 700);
        partition_void_position(partition, TROUBLE_NO_LEADER, NULL, 0, 5000);
        ck_assert(!partition_allows_change(partition, 11, 700));
        partition_clear(&list);
}
END_TEST

/* Also in time, as records may be appended faster than they are scanned. */
START_TEST(test_scan_for_gaps_is_limited)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);
        int64_t offset = 1;

        for (; !partition_ends_scan(partition, 5000); offset += 2)
                partition_scan(partition, offset, 5000);
        ck_assert_int_eq((int)partition->n_gaps, PARTITION_GAPS_MAX);
        partition_scan(partition, 2, 6000);
        partition_scan(partition, 3, 6009);
        ck_assert(!partition_ends_scan(partition, 6009));
        ck_assert(partition_ends_scan(partition, 6010));
        ck_assert_int_eq((int)partition->n_gaps, 1);
        ck_assert(!partition_ends_scan(partition, 6020));
        partition_clear(&list);
}
END_TEST

START_TEST(test_retry_delay_grows_until_a_partition_is_read)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition_void_position(partition, TROUBLE_READ, "corrupt", 200, 1000);
        ck_assert_int_eq((int)partition->retry_ms, 1200);
        ck_assert_int_eq(partition_state(partition, 60000), PARTITION_WAITING);
        partition_void_position(partition, TROUBLE_READ, "corrupt", 200, 2000);
        ck_assert_int_eq((int)partition->retry_ms, 2400);
        for (int i = 0; i < 20; i++)
                partition_void_position(partition, TROUBLE_READ, "corrupt", 200, 2000);
        ck_assert_int_eq((int)partition->retry_ms, 32000);
        ck_assert_int_eq((int)partition->troubled_ms, 1000);
        partition->stage = PARTITION_POSITIONED;
        partition_advance(partition, 0, 0);
        partition_committed(partition);
        ck_assert_int_eq(partition_state(partition, 60000), PARTITION_ROUTING);
        partition_void_position(partition, TROUBLE_READ, "corrupt", 200, 2000);
        ck_assert_int_eq((int)partition->retry_ms, 2200);
        partition_clear(&list);
}
END_TEST

START_TEST(test_partition_is_refused_only_after_ten_seconds)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition_void_position(partition, TROUBLE_BEYOND_END, "ends before", 200, 1000);
        ck_assert_int_eq(partition_state(partition, 10999), PARTITION_WAITING);
        ck_assert_int_eq(partition_state(partition, 11000), PARTITION_REFUSED);
        partition->stage =
            PARTITION_POSITIONED; /* the trouble lasts until the partition has been read for a while */
        ck_assert_int_eq(partition_state(partition, 11000), PARTITION_WAITING);
        partition_void_position(partition, TROUBLE_NONE, NULL, 0, 11000);
        ck_assert_int_eq(partition_state(partition, 11000), PARTITION_RESTORING);
        partition_void_position(partition, TROUBLE_TOPIC, "not available", 200, 12000);
        partition_void_position(partition, TROUBLE_OTHER_LOG, "another record", 200, 60000);
        ck_assert_int_eq(partition_state(partition, 69999), PARTITION_WAITING);
        ck_assert_int_eq(partition_state(partition, 70000), PARTITION_REFUSED);
        partition_clear(&list);
}
END_TEST

START_TEST(test_records_read_back_are_not_open)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->next = 5;
        partition->decide_from = 10;
        ck_assert_int_eq((int)partition_open(partition), 0);
        partition_committed(partition);
        ck_assert_int_eq((int)partition->decide_from, 10);
        partition_clear(&list);
}
END_TEST

START_TEST(test_last_routed_record_is_recognised_by_its_timestamp)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->decide_from = 10;
        ck_assert(partition_recognises(partition, 9, 5000)); /* the timestamp is not known */
        partition->routed_ms = 5000;
        ck_assert(partition_recognises(partition, 9, 5000));
        ck_assert(!partition_recognises(partition, 9, 5001));
        ck_assert(partition_recognises(partition, 8, 4000));
        partition_clear(&list);
}
END_TEST

START_TEST(test_earliest_needed_time_is_kept_for_two_windows)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->dedup = dedup_new(1600, 100000);
        ck_assert(partition_can_judge(partition, 101600));
        ck_assert(partition->needed_ms == INT64_MAX);
        ck_assert(!partition_can_judge(partition, 90000));
        ck_assert(!partition_can_judge(partition, 95000));
        ck_assert_int_eq(partition->needed_ms, 90000);
        dedup_free(partition->dedup);
        partition->dedup = dedup_new(1600, DEDUP_COMPLETE); /* read back from further on */
        ck_assert(partition_can_judge(partition, 90000));
        partition_advance(partition, 0, 93200);
        partition_committed(partition);
        ck_assert(partition_can_judge(partition, 90000));
        partition_advance(partition, 1, 93201);
        partition_committed(partition);
        ck_assert(!dedup_covers(partition->dedup, 90000));
        ck_assert(partition->needed_ms == INT64_MAX);
        partition_clear(&list);
}
END_TEST

START_TEST(test_partitions_are_added_and_removed)
{
        struct partition_list list = {0};

        for (int32_t id = 0; id < 5; id++)
                partition_add(&list, id)->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition_remove(&list, partition_find(&list, 1));
        ck_assert_ptr_null(partition_find(&list, 1));
        for (int32_t id = 2; id < 5; id++)
                ck_assert_int_eq(partition_find(&list, id)->id, id);
        ck_assert_uint_eq(list.n, 4);
        partition_clear(&list);
        ck_assert_uint_eq(list.n, 0);
}
END_TEST

START_TEST(test_waiting_time_starts_at_the_last_routed_record_or_idle_time)
{
        struct partition partition = {.routed_ms = 10000, .last_ms = 12000};

        ck_assert_int_eq(partition_waiting_ms(&partition, 3, 14000), 4000);
        ck_assert_int_eq(partition_waiting_ms(&partition, 0, 15000), 0);
        ck_assert_int_eq(partition_waiting_ms(&partition, 1, 15200), 200);
        ck_assert_int_eq(partition_waiting_ms(&partition, 1, 16000), 1000);
        partition.routed_ms = 15700;
        ck_assert_int_eq(partition_waiting_ms(&partition, 1, 16000), 300);
        partition.routed_ms = -1; /* not known: not later than the last record read */
        partition.last_ms = 15800;
        ck_assert_int_eq(partition_waiting_ms(&partition, 1, 16000), 200);
        partition.routed_ms = 99000; /* from another clock */
        ck_assert_int_eq(partition_waiting_ms(&partition, 1, 16000), 0);
}
END_TEST

START_TEST(test_control_records_at_the_end_are_no_lag)
{
        struct partition partition = {
            .decide_from = 5, .next = 7, .high = 10, .scan_next = -1, .stage = PARTITION_POSITIONED};

        ck_assert_int_eq(partition_lag(&partition), 5);
        partition_note_end(&partition, 10);
        ck_assert_int_eq(partition_lag(&partition), 5); /* two are decided and not committed */
        partition.decide_from = 7;
        ck_assert_int_eq(partition_lag(&partition), 0);
        partition.high = 12;
        ck_assert_int_eq(partition_lag(&partition), 2);
        partition.scan_next = 9;
        partition_note_end(&partition, 12);
        ck_assert_int_eq(partition_lag(&partition),
                         2); /* there may be records in the part that was only scanned */
}
END_TEST

START_TEST(test_uncommitted_decisions_are_dropped_when_rules_change)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition->stage = PARTITION_POSITIONED;
        partition->decide_from = partition->next = partition->known_to = 10;
        partition_forget_open(partition, 5000);
        ck_assert_ptr_nonnull(partition->dedup);
        ck_assert_int_eq(partition->stage, PARTITION_POSITIONED);
        partition->known_to = 11;
        partition_forget_open(partition, 5000);
        ck_assert_ptr_null(partition->dedup);
        ck_assert_int_eq(partition->stage, PARTITION_UNPOSITIONED);
        ck_assert_int_eq(partition->retry_ms, 5000);
        partition_clear(&list);
}
END_TEST

START_TEST(test_partition_waits_while_its_leader_is_missing)
{
        struct partition partition = {.scan_next = -1};

        ck_assert(
            !partition_note_leader(&partition, 0,
                                   1000)); /* its position is being asked for, which detects this itself */
        partition.stage = PARTITION_POSITIONED;
        ck_assert(partition_note_leader(&partition, 0, 1000));
        ck_assert(!partition_note_leader(&partition, 0, 6000));
        ck_assert_int_eq(partition_state(&partition, 60000), PARTITION_WAITING);
        ck_assert(!partition_note_leader(&partition, 1, 11000));
        ck_assert_int_eq(partition_state(&partition, 60000), PARTITION_ROUTING);
}
END_TEST

START_TEST(test_partition_with_an_unread_growing_log_waits)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->stage = PARTITION_POSITIONED;
        partition->next = partition->reached = partition->decide_from = 10;
        ck_assert(!partition_note_log_end(partition, 12, 900000, 900000));
        ck_assert_int_eq((int)partition_lag(partition), 2);
        partition->next = partition->reached = partition->decide_from = 11; /* it is being read */
        ck_assert(!partition_note_log_end(partition, 12, 940000, 940000));
        ck_assert(!partition_note_log_end(partition, 12, 969999, 969999));
        ck_assert(!partition_note_log_end(partition, 12, 969999, 975000)); /* it may be in the queue */
        ck_assert_int_eq(partition_state(partition, 975000), PARTITION_ROUTING);
        partition->next = 10; /* records are read again, which is no progress */
        ck_assert(partition_note_log_end(partition, 12, 970000, 975000));
        ck_assert(!partition_note_log_end(partition, 13, 980000, 980000));
        ck_assert_int_eq(partition_state(partition, 980000), PARTITION_WAITING);
        partition->next = partition->reached = 13;
        ck_assert(!partition_note_log_end(partition, 20, 985000, 985000));
        ck_assert_int_eq(partition_state(partition, 985000), PARTITION_ROUTING);
        partition_clear(&list);
}
END_TEST

START_TEST(test_partition_with_unknown_log_end_waits)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->stage = PARTITION_POSITIONED;
        partition->next = partition->reached = partition->decide_from = 10;
        ck_assert(!partition_note_log_end(partition, 10, 1000, 1000));
        ck_assert(!partition_note_log_end(partition, -1, 30999, 30999));
        ck_assert(partition_note_log_end(partition, -1, 31000, 31000));
        ck_assert_int_eq(partition_state(partition, 31000), PARTITION_WAITING);
        ck_assert_int_eq((int)partition_lag(partition), 0);
        ck_assert(!partition_note_log_end(partition, 10, 35000, 35000));
        ck_assert_int_eq(partition_state(partition, 35000), PARTITION_ROUTING);
        partition_clear(&list);
}
END_TEST

START_TEST(test_first_record_counts_as_fetched_over_the_earliest_connection)
{
        const struct consumer_origin first = {1, 0, 7, .connection = 3, .earliest = 2}, second = first,
                                     over_new = {1, 0, 7, .connection = 3, .earliest = 3};
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->decide_from = 10;
        ck_assert(partition_expects(partition, 9, &first));
        ck_assert(!partition_expects(partition, 10, &first)); /* it is not known yet which log that is */
        partition_note_origin(partition, &first);
        ck_assert(!partition_expects(partition, 10, &second)); /* it may be of another log */
        partition_void_position(partition, TROUBLE_NONE, NULL, 0, 1000);
        ck_assert(partition_expects(partition, 10, &over_new));
        partition_note_origin(partition, &over_new);
        ck_assert(partition_expects(partition, 10, &over_new));
        /* A record that is accepted because it came twice does not make the later connection the log's. */
        partition_note_origin(partition, &(struct consumer_origin){1, 0, 7, .connection = 4, .earliest = 3});
        ck_assert(partition_expects(partition, 11, &over_new));
        ck_assert(consumer_origin_is(&partition->known_origin, &over_new));
        partition_doubt_origin(partition); /* while it waited for its turn */
        ck_assert(!partition_expects(partition, 10, &over_new));
        partition_clear(&list);
}
END_TEST

START_TEST(test_partition_is_repositioned_if_its_log_ends_before_its_offset)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->stage = PARTITION_POSITIONED;
        partition->next = partition->reached = partition->decide_from = 10;
        ck_assert(!partition_note_log_end(partition, 9, 1000, 1000)); /* committed since it was asked */
        ck_assert(!partition_note_log_end(partition, 10, 6000, 6000));
        ck_assert(!partition_note_log_end(partition, 9, 11000, 11000));
        partition->next = partition->reached = partition->decide_from = 11;
        ck_assert(!partition_note_log_end(partition, 10, 16000, 16000));
        ck_assert_int_eq(partition->stage, PARTITION_POSITIONED);
        ck_assert(!partition_note_log_end(partition, 10, 21000, 21000));
        ck_assert_int_eq(partition->stage, PARTITION_UNPOSITIONED);
        partition->stage = PARTITION_POSITIONED;
        ck_assert(!partition_note_log_end(partition, 10, 26000, 26000));
        ck_assert_int_eq(partition->stage, PARTITION_POSITIONED);
        partition_clear(&list);
}
END_TEST

START_TEST(test_control_records_at_the_end_count_as_read)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->stage = PARTITION_POSITIONED;
        partition->next = partition->reached = partition->decide_from = 10;
        partition_note_end(partition, 12);
        ck_assert(!partition_note_log_end(partition, 12, 1000, 1000));
        ck_assert(!partition_note_log_end(partition, 12, 60000, 60000));
        ck_assert_int_eq((int)partition_lag(partition), 0);
        ck_assert(!partition_note_log_end(partition, 13, 61000, 61000));
        ck_assert(partition_note_log_end(partition, 13, 90000, 90000));
        partition_clear(&list);
}
END_TEST

START_TEST(test_partition_without_a_position_is_not_expected_to_be_read)
{
        struct partition_list list = {0};
        struct partition *partition = partition_add(&list, 0);

        partition->next = partition->reached = partition->decide_from = 10;
        ck_assert(!partition_note_log_end(partition, 12, 1000, 1000));
        ck_assert(!partition_note_log_end(partition, 12, 60000, 60000));
        partition->stage = PARTITION_POSITIONED;
        ck_assert(!partition_note_log_end(partition, 12, 65000, 65000));
        ck_assert(partition_note_log_end(partition, 12, 90000, 90000));
        partition_clear(&list);
}
END_TEST

Suite *
suite_partition(void)
{
        Suite *suite = suite_create("partition");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_records_are_accepted_in_order);
        tcase_add_test(all, test_gap_is_accepted_only_if_seen_twice);
        tcase_add_test(all, test_gap_is_remembered_until_the_log_changes);
        tcase_add_test(all, test_record_of_another_origin_is_accepted_if_seen_twice);
        tcase_add_test(all, test_scan_for_gaps_is_limited);
        tcase_add_test(all, test_retry_delay_grows_until_a_partition_is_read);
        tcase_add_test(all, test_partition_is_refused_only_after_ten_seconds);
        tcase_add_test(all, test_records_read_back_are_not_open);
        tcase_add_test(all, test_last_routed_record_is_recognised_by_its_timestamp);
        tcase_add_test(all, test_earliest_needed_time_is_kept_for_two_windows);
        tcase_add_test(all, test_partitions_are_added_and_removed);
        tcase_add_test(all, test_waiting_time_starts_at_the_last_routed_record_or_idle_time);
        tcase_add_test(all, test_partition_with_unknown_log_end_waits);
        tcase_add_test(all, test_control_records_at_the_end_are_no_lag);
        tcase_add_test(all, test_uncommitted_decisions_are_dropped_when_rules_change);
        tcase_add_test(all, test_partition_waits_while_its_leader_is_missing);
        tcase_add_test(all, test_partition_with_an_unread_growing_log_waits);
        tcase_add_test(all, test_control_records_at_the_end_count_as_read);
        tcase_add_test(all, test_first_record_counts_as_fetched_over_the_earliest_connection);
        tcase_add_test(all, test_partition_is_repositioned_if_its_log_ends_before_its_offset);
        tcase_add_test(all, test_partition_without_a_position_is_not_expected_to_be_read);
        suite_add_tcase(suite, all);
        return suite;
}
