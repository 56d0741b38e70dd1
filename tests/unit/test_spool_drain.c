#include <check.h>
#include <poll.h>
#include <stdatomic.h>
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
#include "spool/spool_drain.h"
#include "suites.h"

#define LIMIT 60000         /* ms to wait for anything */
#define KEPT_MS 600001      /* after which a segment that was left behind is tried again */
#define FIRST 1795600000000 /* when record 0 was received */

static const struct config plain = {.ack_timeout_ms = 10000};
static const char *path;
static struct spool_directory *directory;
static struct spool_stats stats;
static struct spool_drain *drain;
static struct spool_drain_owner owner;
static atomic_int may_append, n_answered;

static int
on_may_append(void *arg)
{
        (void)arg;
        return atomic_load(&may_append);
}

static int
on_has_traffic(void *arg)
{
        (void)arg;
        return 0;
}

static void
on_answered(void *arg)
{
        (void)arg;
        atomic_fetch_add(&n_answered, 1);
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
        owner = (struct spool_drain_owner){NULL, on_may_append, on_has_traffic, on_answered};
        atomic_store(&may_append, 1);
        atomic_store(&n_answered, 0);
        drain = NULL;
        fake_producer_start();
}

static void
stop(void)
{
        spool_drain_free(drain);
        drain = NULL;
}

static void
teardown(void)
{
        char *command = mem_printf("rm -r %s", path);

        stop();
        spool_directory_close(directory);
        ck_assert_int_eq(system(command), 0);
        free(command);
        logged_teardown();
        scratch_teardown();
        fake_producer_stop();
}

/* Store n segments with ten records each. */
static void
store(int n)
{
        for (int i = 0; i < n; i++)
                segments_store(directory, &stats, (uint64_t)i + 1, i * 10, 10, NULL);
}

/* Drain n segments of an earlier process, by a thread. */
static void
start(unsigned n, const struct config *config, const char *bootstrap)
{
        struct error error;

        atomic_store(&stats.uncounted, n);
        drain = spool_drain_new(directory, NULL, &stats, n, config, bootstrap, &owner, &error);
        ck_assert_ptr_nonnull(drain);
}

/* Wait for a state of the drain; each turn takes so much of its time. */
static void
await(enum spool_drain_state state, int64_t turn_ms)
{
        for (int i = 0; i < LIMIT && spool_drain_state(drain) != state; i++) {
                disk_pass_time(turn_ms);
                (void)poll(NULL, 0, 1);
        }
        ck_assert_int_eq((int)spool_drain_state(drain), (int)state);
}

/* Wait until all segments but so many have been read to count their records. */
static void
await_counted(unsigned left)
{
        for (int i = 0; i < LIMIT && atomic_load(&stats.uncounted) > left; i++)
                (void)poll(NULL, 0, 1);
        ck_assert_uint_eq(atomic_load(&stats.uncounted), left);
}

static void
expect_acknowledged(int first, int n)
{
        for (int i = first; i < first + n; i++)
                ck_assert_msg(fake_acknowledged[i] == 1, "record %d: %u times", i, fake_acknowledged[i]);
}

static int
has(const char *name)
{
        return faccessat(spool_directory_fd(directory), name, F_OK, 0) == 0;
}

START_TEST(test_segments_are_drained_and_deleted)
{
        store(2);
        start(2, &plain, NULL);
        await(SPOOL_DRAIN_EMPTY, 0);
        expect_acknowledged(0, 20);
        ck_assert_uint_eq(fake_appended[0], 1);
        ck_assert_int_eq(atomic_load(&n_answered), 20);
        ck_assert(!has("0000000000000001.spool"));
        ck_assert(!has("0000000000000002.spool"));
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.uncounted), 0);
        ck_assert_uint_eq(atomic_load(&stats.bytes), 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
        ck_assert_int_eq(spool_stats_oldest_ms(&stats), 0);
}
END_TEST

START_TEST(test_next_segments_are_drained_while_the_last_records_are_in_flight)
{
        store(3);
        fake_fates[9] = FAKE_HELD;
        start(3, &plain, NULL);
        for (int i = 0; i < LIMIT && has("0000000000000003.spool"); i++)
                (void)poll(NULL, 0, 1);
        stop();
        expect_acknowledged(0, 9);
        expect_acknowledged(10, 20);
        ck_assert_uint_eq(fake_acknowledged[9], 0);
        ck_assert(has("0000000000000001.spool"));
        ck_assert(!has("0000000000000002.spool"));
        ck_assert_uint_eq(atomic_load(&stats.records), 1);
        ck_assert_uint_eq(atomic_load(&stats.segments), 1);
        fake_fates[9] = FAKE_ACKNOWLEDGED;
        start(3, &plain, NULL);
        await(SPOOL_DRAIN_EMPTY, 0);
        ck_assert_uint_eq(fake_acknowledged[9], 1);
}
END_TEST

START_TEST(test_records_are_counted_while_kafka_is_away)
{
        store(2);
        atomic_store(&may_append, 0);
        start(2, &plain, NULL);
        await_counted(0);
        ck_assert_uint_eq(atomic_load(&stats.records), 20);
        ck_assert_int_eq(spool_stats_oldest_ms(&stats), FIRST);
        for (int i = 0; i < 20; i++)
                ck_assert_uint_eq(fake_appended[i], 0);
        atomic_store(&may_append, 1);
        await(SPOOL_DRAIN_EMPTY, 0);
        expect_acknowledged(0, 20);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
}
END_TEST

/* The disk loses a record after the segment was read to count its records, and before it is drained. */
START_TEST(test_damage_after_counting_is_found)
{
        uint64_t offsets[10];

        segments_store(directory, &stats, 1, 0, 10, offsets);
        atomic_store(&may_append, 0);
        start(1, &plain, NULL);
        await_counted(0);
        ck_assert_uint_eq(atomic_load(&stats.records), 10);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 0);
        segments_damage(directory, 1, offsets[6]);
        atomic_store(&may_append, 1);
        await(SPOOL_DRAIN_EMPTY, 0);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 1);
        ck_assert_uint_gt(atomic_load(&stats.lost_bytes), SEGMENTS_BODY);
        ck_assert_ptr_nonnull(strstr(logged_read(), "a segment of the spool is damaged"));
        ck_assert(has("0000000000000001.spool.damaged"));
}
END_TEST

/* It could be read to count its records, but not to be drained, for example because descriptors ran out. */
START_TEST(test_segment_is_counted_once)
{
        store(1);
        fake_fates[4] = FAKE_REFUSED;
        atomic_store(&may_append, 0);
        start(1, &plain, NULL);
        await_counted(0);
        atomic_store(&disk_unopenable, "0000000000000001.spool");
        atomic_store(&may_append, 1);
        await(SPOOL_DRAIN_KEPT, 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 10);
        atomic_store(&disk_unopenable, NULL);
        for (int i = 0; i < LIMIT && atomic_load(&stats.refused) == 0; i++) {
                disk_pass_time(10);
                (void)poll(NULL, 0, 1);
        }
        ck_assert_uint_eq(atomic_load(&stats.refused), 1);
        ck_assert_uint_eq(atomic_load(&stats.records), 1);
}
END_TEST

START_TEST(test_refused_record_delays_no_other_segment)
{
        store(2);
        fake_fates[4] = FAKE_REFUSED;
        start(2, &plain, NULL);
        await(SPOOL_DRAIN_KEPT, 10);
        expect_acknowledged(0, 4);
        expect_acknowledged(5, 15);
        ck_assert(has("0000000000000001.spool"));
        ck_assert(!has("0000000000000002.spool"));
        ck_assert_uint_eq(atomic_load(&stats.refused), 1);
        ck_assert_uint_eq(atomic_load(&stats.records), 1);
        fake_fates[4] = FAKE_ACKNOWLEDGED;
        disk_pass_time(KEPT_MS);
        await(SPOOL_DRAIN_EMPTY, 10);
        expect_acknowledged(0, 20);
        ck_assert(!has("0000000000000001.spool"));
        ck_assert_uint_eq(atomic_load(&stats.refused), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
}
END_TEST

START_TEST(test_refused_record_beside_a_failed_one_is_counted_once)
{
        store(1);
        fake_fates[4] = FAKE_REFUSED;
        fake_fates[7] = FAKE_FAILED;
        start(1, &plain, NULL);
        for (int i = 0; i < LIMIT && (fake_appended[7] < 4 || atomic_load(&stats.refused) != 1); i++) {
                disk_pass_time(10);
                (void)poll(NULL, 0, 1);
        }
        ck_assert_uint_eq(atomic_load(&stats.refused), 1);
        fake_fates[4] = fake_fates[7] = FAKE_ACKNOWLEDGED;
        await(SPOOL_DRAIN_EMPTY, 10);
        ck_assert_uint_eq(atomic_load(&stats.refused), 0);
        expect_acknowledged(0, 10);
}
END_TEST

START_TEST(test_failures_are_repeated)
{
        struct error error;

        segments_store(directory, &stats, 1, 0, 10, NULL);
        fake_fates[3] = FAKE_FAILED;
        start(1, &plain, NULL);
        for (int i = 0; i < LIMIT && fake_appended[3] < 5; i++) {
                disk_pass_time(100);
                (void)poll(NULL, 0, 1);
        }
        ck_assert_uint_ge(fake_appended[3], 5);
        spool_drain_failure(drain, &error);
        ck_assert_str_eq(error.text, "failed");
        ck_assert(has("0000000000000001.spool"));
        ck_assert_int_eq((int)spool_drain_state(drain), SPOOL_DRAIN_WORKING);
        fake_fates[3] = FAKE_ACKNOWLEDGED;
        await(SPOOL_DRAIN_EMPTY, 10);
        expect_acknowledged(0, 10);
}
END_TEST

START_TEST(test_damaged_segments_are_put_aside_and_delay_no_other)
{
        int damaged = _i == 0 ? 6 : 9; /* the last one has only the seal after it */
        uint64_t offsets[10];

        segments_store(directory, &stats, 1, 0, 10, offsets);
        segments_store(directory, &stats, 2, 10, 10, NULL);
        segments_damage(directory, 1, offsets[damaged]);
        start(2, &plain, NULL);
        await(SPOOL_DRAIN_EMPTY, 0);
        expect_acknowledged(0, damaged);
        expect_acknowledged(damaged + 1, 19 - damaged);
        ck_assert(has("0000000000000001.spool.damaged"));
        ck_assert(!has("0000000000000001.spool"));
        ck_assert_uint_eq(atomic_load(&stats.damaged), 1);
        ck_assert_uint_gt(atomic_load(&stats.lost_bytes), SEGMENTS_BODY);
        ck_assert_ptr_nonnull(
            strstr(logged_read(),
                   "a segment of the spool is damaged: deliveries that were answered 200 may be lost"));
}
END_TEST

/* Its damage and its records are noticed as soon as it can be opened. */
START_TEST(test_segment_that_cannot_be_opened_delays_no_other)
{
        uint64_t offsets[10];

        segments_store(directory, &stats, 1, 0, 10, offsets);
        segments_store(directory, &stats, 2, 10, 10, NULL);
        segments_damage(directory, 1, offsets[6]);
        atomic_store(&disk_unopenable, "0000000000000001.spool");
        atomic_store(&may_append, _i == 0);
        start(2, &plain, NULL);
        await_counted(1);
        atomic_store(&may_append, 1);
        await(SPOOL_DRAIN_KEPT, 0);
        expect_acknowledged(10, 10);
        ck_assert_uint_eq(atomic_load(&stats.uncounted), 1);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 0);
        atomic_store(&disk_unopenable, NULL);
        disk_pass_time(KEPT_MS);
        await(SPOOL_DRAIN_EMPTY, 0);
        expect_acknowledged(0, 6);
        expect_acknowledged(7, 3);
        ck_assert_uint_eq(atomic_load(&stats.uncounted), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 1);
        ck_assert_ptr_nonnull(strstr(logged_read(), "a segment of the spool is damaged"));
}
END_TEST

START_TEST(test_stop_keeps_what_kafka_has_not_acknowledged)
{
        segments_store(directory, &stats, 1, 0, 10, NULL);
        fake_fates[5] = FAKE_HELD;
        fake_forgets = _i;
        start(1, &plain, NULL);
        for (int i = 0; i < LIMIT && fake_acknowledged[9] == 0; i++)
                (void)poll(NULL, 0, 1);
        ck_assert_uint_eq(fake_acknowledged[9], 1);
        ck_assert_uint_eq(fake_appended[5], 1);
        stop();
        ck_assert(has("0000000000000001.spool"));
        fake_fates[5] = FAKE_ACKNOWLEDGED;
        start(1, &plain, NULL); /* another process */
        await(SPOOL_DRAIN_EMPTY, 0);
        ck_assert_uint_eq(fake_acknowledged[5], 1);
        ck_assert(!has("0000000000000001.spool"));
}
END_TEST

/* Records that a writer stores while they are drained: its segment is ended when it is the only one. */
START_TEST(test_segment_that_is_written_is_ended_and_drained)
{
        struct spool_writer *writer;
        struct spool_inbox inbox;
        struct spool_item items[20];
        uint8_t fields[20][32];
        struct error error;
        int wake[2];

        ck_assert_int_eq(pipe(wake), 0);
        spool_inbox_init(&inbox, wake[1]);
        writer = spool_writer_new(directory, &stats, 1, &error);
        drain = spool_drain_new(directory, writer, &stats, 0, NULL, NULL, &owner, &error);
        for (int i = 0; i < 20; i++) {
                char key[16];
                size_t len = 0;
                struct pollfd readable = {wake[0], POLLIN, 0};

                (void)snprintf(key, sizeof(key), "%d", i);
                ck_assert_int_eq(segment_add_field(fields[i], sizeof(fields[i]), &len, "",
                                                   (struct span){key, strlen(key)}),
                                 0);
                items[i] = (struct spool_item){.inbox = &inbox,
                                               .item.record = {.received_ms = FIRST,
                                                               .fields = {(const char *)fields[i], len}}};
                spool_writer_put(writer, &items[i]);
                if (i % 5 != 4)
                        continue;
                ck_assert_int_eq(poll(&readable, 1, LIMIT), 1);
                for (int n = 0; n < LIMIT && fake_acknowledged[i] == 0; n++)
                        (void)poll(NULL, 0, 1);
                ck_assert_uint_eq(fake_acknowledged[i], 1);
        }
        await(SPOOL_DRAIN_EMPTY, 0);
        expect_acknowledged(0, 20);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
        ck_assert_uint_eq(atomic_load(&stats.bytes), 0);
        stop();
        spool_writer_free(writer);
        (void)close(wake[0]);
        (void)close(wake[1]);
}
END_TEST

Suite *
suite_spool_drain(void)
{
        Suite *suite = suite_create("spool_drain");
        TCase *tcase = tcase_create("drain");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_set_timeout(tcase, 90);
        tcase_add_test(tcase, test_segments_are_drained_and_deleted);
        tcase_add_test(tcase, test_next_segments_are_drained_while_the_last_records_are_in_flight);
        tcase_add_test(tcase, test_records_are_counted_while_kafka_is_away);
        tcase_add_test(tcase, test_damage_after_counting_is_found);
        tcase_add_test(tcase, test_segment_is_counted_once);
        tcase_add_test(tcase, test_refused_record_delays_no_other_segment);
        tcase_add_test(tcase, test_refused_record_beside_a_failed_one_is_counted_once);
        tcase_add_test(tcase, test_failures_are_repeated);
        tcase_add_loop_test(tcase, test_damaged_segments_are_put_aside_and_delay_no_other, 0, 2);
        tcase_add_loop_test(tcase, test_segment_that_cannot_be_opened_delays_no_other, 0, 2);
        tcase_add_loop_test(tcase, test_stop_keeps_what_kafka_has_not_acknowledged, 0, 2);
        tcase_add_test(tcase, test_segment_that_is_written_is_ended_and_drained);
        suite_add_tcase(suite, tcase);
        return suite;
}
