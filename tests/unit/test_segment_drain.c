#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "disk.h"
#include "fake_producer.h"
#include "logged.h"
#include "scratch.h"
#include "segments.h"
#include "spool/segment_drain.h"
#include "suites.h"

#define RECORDS 20

static const char *path;
static struct spool_directory *directory;
static struct spool_stats stats;
static struct log_flood refusals;
static struct noted_damage damage;
static struct producer *producer;
static struct segment_drain *drain;
static uint64_t offsets[RECORDS];
static const struct segment_drain_window window = {5, UINT64_C(1) << 20};

static void
on_report(void *record_arg, const struct producer_outcome *outcome, void *arg)
{
        (void)arg;
        ck_assert_ptr_eq(segment_drain_report(record_arg, outcome).segment, drain);
}

/* Store the records in segment 1. */
static void
store(void)
{
        segments_store(directory, &stats, 1, 0, RECORDS, offsets);
        atomic_store(&stats.records, RECORDS);
}

static void
setup(void)
{
        struct error error;

        scratch_setup();
        logged_setup();
        path = scratch_path("spool");
        ck_assert_int_eq(mkdir(path, 0700), 0);
        directory = spool_directory_open(path, 0, &error);
        ck_assert_ptr_nonnull(directory);
        spool_stats_init(&stats, UINT64_C(1) << 40);
        fake_producer_start();
        producer =
            producer_new(NULL, NULL, (struct producer_manner){PRODUCER_BULK, 1}, -1, on_report, NULL, &error);
        drain = NULL;
}

static void
teardown(void)
{
        char *command = mem_printf("rm -r %s", path);

        producer_free(producer);
        segment_drain_close(drain);
        noted_damage_clear(&damage);
        fake_producer_stop();
        spool_directory_close(directory);
        ck_assert_int_eq(system(command), 0);
        free(command);
        logged_teardown();
        scratch_teardown();
}

static void
open_drain(void)
{
        struct error error;

        drain = segment_drain_open(directory, 1, &stats, &refusals, &damage, NULL, &error);
        ck_assert_ptr_nonnull(drain);
}

static char failure[sizeof(((struct error *)0)->text)]; /* why the pass could not go on; "": it could */

/* Complete a pass. Return its result. */
static enum segment_drain_result
pass(void)
{
        struct error error;

        failure[0] = '\0';
        ck_assert_int_eq(segment_drain_begin(drain, &error), 0);
        for (unsigned turn = 0; turn < 1000; turn++) {
                if (segment_drain_send(drain, producer, &window, &error) != 0)
                        (void)snprintf(failure, sizeof(failure), "%s", error.text);
                producer_serve(producer);
                if (segment_drain_result(drain) != SEGMENT_DRAIN_MORE)
                        return segment_drain_result(drain);
        }
        ck_abort_msg("the pass does not end");
}

/* Repeat passes while records failed. */
static enum segment_drain_result
passes(void)
{
        enum segment_drain_result result = pass();

        for (unsigned i = 0; i < 100 && result == SEGMENT_DRAIN_AGAIN; i++)
                result = pass();
        return result;
}

static void
expect_acknowledged_but(int one)
{
        for (int i = 0; i < RECORDS; i++)
                ck_assert_uint_eq(fake_acknowledged[i], i == one ? 0 : 1);
}

static int
exists(const char *name)
{
        return faccessat(spool_directory_fd(directory), name, F_OK, 0) == 0;
}

static void
remove_drained(void)
{
        struct error error;

        ck_assert(exists("0000000000000001.spool"));
        ck_assert_int_eq(segment_drain_remove(drain, &error), 0);
        ck_assert(!exists("0000000000000001.spool"));
        ck_assert_uint_eq(atomic_load(&stats.bytes), 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
}

START_TEST(test_segment_is_deleted_when_kafka_has_all_of_it)
{
        store();
        open_drain();
        ck_assert_uint_eq(segment_drain_summary(drain)->n_records, RECORDS);
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
        ck_assert_uint_eq(fake_most_outstanding, window.records);
        ck_assert_uint_eq(segment_drain_pass(drain)->n_acknowledged, RECORDS);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.drained), RECORDS);
        remove_drained();
        ck_assert(!exists("0000000000000001.spool.damaged"));
}
END_TEST

START_TEST(test_next_pass_appends_only_what_failed)
{
        store();
        open_drain();
        fake_fates[3] = fake_fates[7] = FAKE_FAILED;
        for (unsigned i = 0; i < 3; i++)
                ck_assert_int_eq(pass(), SEGMENT_DRAIN_AGAIN);
        ck_assert_uint_eq(fake_acknowledged[3], 0);
        fake_fates[3] = FAKE_ACKNOWLEDGED;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_AGAIN);
        fake_fates[7] = FAKE_ACKNOWLEDGED;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
        for (int i = 0; i < RECORDS; i++)
                ck_assert_uint_eq(fake_appended[i], i == 3 ? 4 : i == 7 ? 5 : 1);
        remove_drained();
}
END_TEST

/* They may be for other partitions. */
START_TEST(test_failure_delays_no_other_record)
{
        store();
        open_drain();
        fake_fates[0] = FAKE_FAILED;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_AGAIN);
        expect_acknowledged_but(0);
        ck_assert_uint_eq(segment_drain_pass(drain)->n_failed, 1);
}
END_TEST

START_TEST(test_full_queue_delays)
{
        store();
        open_drain();
        fake_fates[8] = FAKE_NO_ROOM;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_AGAIN);
        ck_assert_str_eq(failure, "no room");
        fake_fates[8] = FAKE_ACKNOWLEDGED;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
}
END_TEST

START_TEST(test_refused_record_keeps_the_segment_and_stops_no_other)
{
        store();
        open_drain();
        fake_fates[4] = _i == 0 ? FAKE_REFUSED : FAKE_TOO_LARGE;
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_KEPT);
        expect_acknowledged_but(4);
        ck_assert_uint_eq(segment_drain_pass(drain)->n_refused, 1);
        ck_assert_uint_eq(atomic_load(&stats.records), 1);
        fake_fates[4] = FAKE_ACKNOWLEDGED; /* the topic now accepts it */
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
        remove_drained();
}
END_TEST

START_TEST(test_record_with_malformed_fields_keeps_the_segment)
{
        segments_store_malformed(directory, &stats, 1, 0, RECORDS, 4);
        open_drain();
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_KEPT);
        expect_acknowledged_but(4);
        ck_assert_ptr_nonnull(strstr(logged_read(), "its fields are malformed"));
}
END_TEST

/* Complete a pass in which a record fails, so that the next one has to read it again. */
static void
fail_first_pass(int record)
{
        fake_fates[record] = FAKE_FAILED;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_AGAIN);
        fake_fates[record] = FAKE_ACKNOWLEDGED;
}

/* The segment is listed again before anything is decided: the record may be readable again. */
START_TEST(test_record_that_cannot_be_read_for_a_while_is_appended)
{
        store();
        open_drain();
        fail_first_pass(5);
        disk_unreadable_from = offsets[5];
        disk_unreadable_to = offsets[5] + 10;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_UNREADABLE);
        ck_assert_uint_eq(fake_acknowledged[5], 0);
        disk_unreadable_from = disk_unreadable_to = 0;
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        remove_drained();
        ck_assert(!exists("0000000000000001.spool.damaged"));
}
END_TEST

START_TEST(test_record_that_cannot_be_read_any_more_is_counted_as_lost)
{
        store();
        open_drain();
        fail_first_pass(5);
        segments_damage(directory, 1, offsets[5]);
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_UNREADABLE);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 0);
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(5);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 1);
        ck_assert_uint_gt(atomic_load(&stats.lost_bytes), SEGMENTS_BODY);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_ptr_nonnull(strstr(logged_read(), "a segment of the spool is damaged"));
        remove_drained();
        ck_assert(exists("0000000000000001.spool.damaged"));
}
END_TEST

/* What was acknowledged before is not appended again when the records are listed again. */
START_TEST(test_record_that_can_be_read_only_later_is_appended)
{
        char *name = mem_printf("%s/0000000000000001.spool", path), bytes[6];
        int fd;

        store();
        segments_damage(directory, 1, offsets[5]);
        open_drain();
        fd = open(name, O_WRONLY);
        memset(bytes, 5, sizeof(bytes));
        ck_assert_int_eq(pwrite(fd, bytes, sizeof(bytes), (off_t)offsets[5] + SEGMENT_HEAD_SIZE + 100),
                         sizeof(bytes));
        (void)close(fd);
        free(name);
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_AGAIN);
        ck_assert_str_eq(failure, "more of the segment can be read than before");
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_DONE);
        for (int i = 0; i < RECORDS; i++)
                ck_assert_uint_eq(fake_acknowledged[i], 1);
        remove_drained();
        ck_assert(!exists("0000000000000001.spool.damaged"));
}
END_TEST

static void
fail_to_read(uint64_t from, uint64_t to)
{
        disk_unreadable_from = from;
        disk_unreadable_to = to;
}

/* The records of this process were counted when they were written; those of an earlier one are counted now. */
START_TEST(test_disk_that_fails_for_a_while_has_lost_nothing)
{
        int is_all = _i % 2, is_earlier = _i / 2;

        store();
        fail_to_read(is_all ? 0 : offsets[5], is_all ? 1 << 20 : offsets[5] + 10);
        open_drain();
        if (is_earlier) {
                atomic_store(&stats.records, 0);
                segment_drain_count(drain);
        }
        for (unsigned i = 0; i < 3; i++)
                ck_assert_int_eq(pass(), SEGMENT_DRAIN_UNREADABLE);
        /* A sector is lost, with the records in it. */
        ck_assert_uint_eq(fake_acknowledged[0], is_all ? 0 : 1);
        ck_assert_uint_eq(fake_acknowledged[RECORDS - 1], is_all ? 0 : 1);
        ck_assert_uint_eq(fake_acknowledged[5], 0);
        ck_assert(is_earlier || atomic_load(&stats.records) > 0);
        fail_to_read(0, 0);
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
        ck_assert_uint_eq(atomic_load(&stats.damaged) + atomic_load(&stats.lost_bytes), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        remove_drained();
        ck_assert(!exists("0000000000000001.spool.damaged"));
}
END_TEST

/* What Kafka has acknowledged is not forgotten. */
START_TEST(test_disk_that_fails_between_passes_has_lost_nothing)
{
        store();
        open_drain();
        fail_first_pass(5);
        fail_to_read(0, 1 << 20);
        for (unsigned i = 0; i < 3; i++)
                ck_assert_int_eq(pass(), SEGMENT_DRAIN_UNREADABLE);
        ck_assert_uint_eq(atomic_load(&stats.records), 1);
        fail_to_read(0, 0);
        ck_assert_int_eq(passes(), SEGMENT_DRAIN_DONE);
        for (int i = 0; i < RECORDS; i++)
                ck_assert_uint_eq(fake_appended[i], i == 5 ? 2 : 1);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 0);
}
END_TEST

START_TEST(test_damaged_segment_is_put_aside)
{
        store();
        segments_damage(directory, 1, offsets[6]);
        open_drain();
        ck_assert_uint_gt(segment_drain_summary(drain)->damaged_bytes, SEGMENTS_BODY);
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(6);
        remove_drained();
        ck_assert(exists("0000000000000001.spool.damaged"));
}
END_TEST

/* A failed sync of the directory changes nothing: after a power failure the segment is drained again. */
START_TEST(test_damaged_segment_is_put_aside_once)
{
        store();
        segments_damage(directory, 1, offsets[6]);
        open_drain();
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        disk_record(path);
        disk_fails_at = 0;
        disk_fails_with = 5 /* EIO */;
        remove_drained();
        disk_stop();
        disk_forget();
}
END_TEST

START_TEST(test_records_without_a_report_are_appended_again)
{
        struct error error;

        store();
        open_drain();
        fake_fates[2] = fake_fates[3] = FAKE_HELD;
        fake_forgets = _i;
        ck_assert_int_eq(segment_drain_begin(drain, &error), 0);
        for (unsigned turn = 0; turn < 100; turn++) {
                ck_assert_int_eq(segment_drain_send(drain, producer, &window, &error), 0);
                producer_serve(producer);
                ck_assert_int_eq(segment_drain_result(drain), SEGMENT_DRAIN_MORE);
        }
        producer_free(producer);
        segment_drain_fail_outstanding(drain);
        ck_assert_int_eq(segment_drain_result(drain), SEGMENT_DRAIN_AGAIN);
        fake_fates[2] = fake_fates[3] = FAKE_ACKNOWLEDGED;
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        expect_acknowledged_but(-1);
}
END_TEST

START_TEST(test_segment_that_was_deleted_cannot_be_drained_again)
{
        struct error error;

        store();
        open_drain();
        ck_assert_int_eq(pass(), SEGMENT_DRAIN_DONE);
        ck_assert_int_eq(spool_directory_remove(directory, 1), 0);
        ck_assert_int_eq(segment_drain_remove(drain, &error), 0);
        ck_assert_int_eq(segment_drain_begin(drain, &error), -1);
        ck_assert_ptr_null(segment_drain_open(directory, 1, &stats, &refusals, &damage, NULL, &error));
}
END_TEST

Suite *
suite_segment_drain(void)
{
        Suite *suite = suite_create("segment_drain");
        TCase *tcase = tcase_create("segment_drain");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, test_segment_is_deleted_when_kafka_has_all_of_it);
        tcase_add_test(tcase, test_next_pass_appends_only_what_failed);
        tcase_add_test(tcase, test_failure_delays_no_other_record);
        tcase_add_test(tcase, test_full_queue_delays);
        tcase_add_loop_test(tcase, test_refused_record_keeps_the_segment_and_stops_no_other, 0, 2);
        tcase_add_test(tcase, test_record_with_malformed_fields_keeps_the_segment);
        tcase_add_test(tcase, test_record_that_cannot_be_read_for_a_while_is_appended);
        tcase_add_test(tcase, test_record_that_cannot_be_read_any_more_is_counted_as_lost);
        tcase_add_test(tcase, test_record_that_can_be_read_only_later_is_appended);
        tcase_add_loop_test(tcase, test_disk_that_fails_for_a_while_has_lost_nothing, 0, 4);
        tcase_add_test(tcase, test_disk_that_fails_between_passes_has_lost_nothing);
        tcase_add_test(tcase, test_damaged_segment_is_put_aside);
        tcase_add_test(tcase, test_damaged_segment_is_put_aside_once);
        tcase_add_loop_test(tcase, test_records_without_a_report_are_appended_again, 0, 2);
        tcase_add_test(tcase, test_segment_that_was_deleted_cannot_be_drained_again);
        suite_add_tcase(suite, tcase);
        return suite;
}
