#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
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

/* Segments that a drain leaves behind, in the log and in the metrics. */

#define LIMIT 60000         /* ms to wait for anything */
#define KEPT_MS 600001      /* after which a segment that was left behind is tried again */
#define FIRST 1795600000000 /* when record 0 was received */

static const struct config plain = {.ack_timeout_ms = 10000};
static const char *path;
static struct spool_directory *directory;
static struct spool_stats stats;
static struct spool_drain *drain;

static int
always(void *arg)
{
        (void)arg;
        return 1;
}

static int
never(void *arg)
{
        (void)arg;
        return 0;
}

static void
ignore(void *arg)
{
        (void)arg;
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
        drain = NULL;
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
        fake_producer_stop();
        spool_directory_close(directory);
        ck_assert_int_eq(system(command), 0);
        free(command);
        logged_teardown();
        scratch_teardown();
}

/* Drain beside a writer, which may be NULL, also n segments of an earlier process. */
static void
start_beside(struct spool_writer *writer, unsigned n)
{
        const struct spool_drain_owner owner = {NULL, always, never, ignore};
        struct error error;

        drain = spool_drain_new(directory, writer, &stats, n, &plain, NULL, &owner, &error);
        ck_assert_ptr_nonnull(drain);
}

/* Drain n segments of an earlier process. */
static void
start(unsigned n)
{
        atomic_store(&stats.uncounted, n);
        start_beside(NULL, n);
}

static void
await(enum spool_drain_state state)
{
        for (int i = 0; i < LIMIT && spool_drain_state(drain) != state; i++)
                (void)poll(NULL, 0, 1);
        ck_assert_int_eq((int)spool_drain_state(drain), (int)state);
}

/* Each live delivery that is too large for the topic makes a segment that stays. */
START_TEST(test_log_does_not_grow_with_the_segments_that_stay)
{
        const char *refused = "Kafka refuses a spooled delivery; its segment stays";
        const char *stays = "a segment of the spool stays and is tried again";
        unsigned n_refused = 0, n_stays = 0;

        for (int i = 0; i < 20; i++) {
                segments_store(directory, &stats, (uint64_t)i + 1, i, 1, NULL);
                fake_fates[i] = FAKE_REFUSED;
        }
        start(20);
        await(SPOOL_DRAIN_KEPT);
        stop();
        for (char *line = strtok((char *)(uintptr_t)logged_read(), "\n"); line != NULL;
             line = strtok(NULL, "\n")) {
                const char *n = strstr(line, " n=");

                if (strstr(line, refused) != NULL)
                        n_refused += n == NULL ? 1 : (unsigned)atoi(n + 3);
                if (strstr(line, stays) != NULL)
                        n_stays += n == NULL ? 1 : (unsigned)atoi(n + 3);
        }
        ck_assert_uint_eq(n_refused, 20);
        ck_assert_uint_eq(n_stays, 20);
}
END_TEST

START_TEST(test_oldest_record_is_that_of_a_segment_that_stays)
{
        segments_store(directory, &stats, 1, 0, 10, NULL);
        segments_store(directory, &stats, 2, 10, 10, NULL);
        fake_fates[4] = FAKE_REFUSED;
        start(2);
        await(SPOOL_DRAIN_KEPT);
        ck_assert_int_eq(spool_stats_oldest_ms(&stats), FIRST + 4);
        fake_fates[4] = FAKE_ACKNOWLEDGED;
        disk_pass_time(KEPT_MS);
        await(SPOOL_DRAIN_EMPTY);
        ck_assert_int_eq(spool_stats_oldest_ms(&stats), 0);
}
END_TEST

/* For example because descriptors or memory ran out. */
START_TEST(test_segment_that_cannot_be_opened_is_tried_again_soon)
{
        struct error error;

        segments_store(directory, &stats, 1, 0, 10, NULL);
        atomic_store(&disk_unopenable, "0000000000000001.spool");
        start(1);
        await(SPOOL_DRAIN_KEPT);
        spool_drain_failure(drain, &error);
        ck_assert_str_eq(error.text, "Too many open files");
        atomic_store(&disk_unopenable, NULL);
        disk_pass_time(10001);
        await(SPOOL_DRAIN_EMPTY);
        ck_assert_uint_eq(fake_acknowledged[9], 1);
}
END_TEST

/* Somebody has put it into the directory meanwhile: the size must not become negative, which is more than spool_max. */
START_TEST(test_segment_that_was_not_counted_does_not_fill_the_spool)
{
        struct spool_stats others;

        spool_stats_init(&others, UINT64_C(1) << 40);
        segments_store(directory, &others, 1, 0, 10, NULL);
        start(0);
        await(SPOOL_DRAIN_EMPTY);
        stop();
        ck_assert_uint_eq(fake_acknowledged[9], 1);
        ck_assert_uint_eq(atomic_load(&stats.bytes), 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
}
END_TEST

/* An I/O error is not damage. */
START_TEST(test_segment_stays_until_the_disk_returns_all_of_it)
{
        uint64_t offsets[10];

        segments_store(directory, &stats, 1, 0, 10, offsets);
        disk_unreadable_from = offsets[5];
        disk_unreadable_to = offsets[5] + 1;
        start(1);
        await(SPOOL_DRAIN_KEPT);
        for (int i = 0; i < 10; i++)
                ck_assert(fake_acknowledged[i] == 1 || (i >= 4 && i <= 8));
        ck_assert_uint_eq(fake_acknowledged[5], 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 1);
        disk_unreadable_from = disk_unreadable_to = 0;
        disk_pass_time(10001);
        await(SPOOL_DRAIN_EMPTY);
        for (int i = 0; i < 10; i++)
                ck_assert_uint_eq(fake_acknowledged[i], 1);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
}
END_TEST

/* Each time the records are listed once, and none is left to be sent. */
START_TEST(test_unreadable_segment_is_read_ever_more_rarely)
{
        uint64_t offsets[10];
        unsigned n_once, n;

        segments_store(directory, &stats, 1, 0, 10, offsets);
        disk_unreadable_from = offsets[5];
        disk_unreadable_to = offsets[5] + 1;
        start(1);
        await(SPOOL_DRAIN_KEPT);
        ck_assert_uint_eq(fake_acknowledged[9], 1);
        n = atomic_load(&disk_n_unreadable);
        n_once = n / 2; /* it was listed, and then sent */
        ck_assert_uint_gt(n_once, 0);
        for (int64_t pause_ms = 10000; pause_ms <= 320000; pause_ms *= 2) {
                disk_pass_time(pause_ms - 5000);
                (void)poll(NULL, 0, 500); /* some turns of the drain */
                ck_assert_uint_eq(atomic_load(&disk_n_unreadable), n);
                n += n_once;
                for (int i = 0; i < LIMIT / 500 && atomic_load(&disk_n_unreadable) != n; i++) {
                        disk_pass_time(i == 0 ? 5001 : 1000);
                        (void)poll(NULL, 0, 500);
                }
                ck_assert_uint_eq(atomic_load(&disk_n_unreadable), n);
        }
        disk_unreadable_from = disk_unreadable_to = 0;
        disk_pass_time(KEPT_MS);
        await(SPOOL_DRAIN_EMPTY);
        ck_assert_uint_eq(fake_acknowledged[5], 1);
}
END_TEST

START_TEST(test_drain_that_reads_from_a_slow_disk_can_be_stopped)
{
        segments_store(directory, &stats, 1, 0, 2000, NULL);
        disk_unreadable_takes_ms = 50;
        disk_unreadable_from = 4096;
        disk_unreadable_to = 1 << 30;
        start(1);
        for (int i = 0; i < LIMIT && atomic_load(&disk_n_unreadable) < 5; i++)
                (void)poll(NULL, 0, 1);
        ck_assert(spool_drain_is_alive(drain, 0));
        ck_assert(!spool_drain_is_trying(drain));
        stop();
        ck_assert_uint_ge(atomic_load(&disk_n_unreadable), 5);
        ck_assert_uint_lt(atomic_load(&disk_n_unreadable), 500); /* of more than 500 blocks */
        ck_assert_ptr_null(strstr(logged_read(), "a segment of the spool stays"));
}
END_TEST

/* Replace the end of segment 1 by zeros, from this offset. */
static void
wipe(uint64_t offset)
{
        static const char zeros[1 << 16];
        int fd = openat(spool_directory_fd(directory), "0000000000000001.spool", O_WRONLY);
        off_t size = lseek(fd, 0, SEEK_END);

        ck_assert_int_gt(size, (off_t)offset);
        ck_assert_int_gt(pwrite(fd, zeros, (size_t)size - offset, (off_t)offset), 0);
        (void)close(fd);
}

static void
expect_damage(void)
{
        await(SPOOL_DRAIN_EMPTY);
        ck_assert_uint_eq(atomic_load(&stats.damaged), 1);
        ck_assert_uint_gt(atomic_load(&stats.lost_bytes), SEGMENTS_BODY);
        ck_assert_ptr_nonnull(strstr(logged_read(), "a segment of the spool is damaged"));
        ck_assert_ptr_null(strstr(logged_read(), "never answered 200"));
        ck_assert_int_eq(faccessat(spool_directory_fd(directory), "0000000000000001.spool.damaged", F_OK, 0),
                         0);
}

/* The block with the seal is unreadable at first, and then replaced. */
START_TEST(test_unreadable_end_that_turns_into_zeros_is_damage)
{
        uint64_t offsets[10];

        segments_store(directory, &stats, 1, 0, 10, offsets);
        disk_unreadable_from = _i == 0 ? 0 : offsets[9] + 8;
        disk_unreadable_to = 1 << 20;
        start(1);
        await(SPOOL_DRAIN_KEPT);
        wipe(disk_unreadable_from / 4096 * 4096);
        disk_unreadable_from = disk_unreadable_to = 0;
        disk_pass_time(KEPT_MS);
        expect_damage();
}
END_TEST

/* Store a record by a writer, and end its segment. */
static struct spool_writer *
store_and_seal(void)
{
        static char fields[64], body[2 * SEGMENTS_BODY];
        static struct spool_inbox inbox;
        static struct spool_item item;
        struct error error;
        struct spool_writer *writer = spool_writer_new(directory, &stats, 1, &error);
        size_t len = 0;

        ck_assert_ptr_nonnull(writer);
        spool_inbox_init(&inbox, STDERR_FILENO);
        ck_assert_int_eq(segment_add_field((uint8_t *)fields, sizeof(fields), &len, "",
                                           (struct span){"0", 1}),
                         0);
        item = (struct spool_item){.inbox = &inbox};
        item.item.record = (struct segment_record){.received_ms = FIRST,
                                                   .fields = {fields, len},
                                                   .body = {body, sizeof(body)}};
        spool_writer_put(writer, &item);
        for (int i = 0; i < LIMIT && spool_inbox_take(&inbox) == NULL; i++)
                (void)poll(NULL, 0, 1);
        spool_writer_end_segment(writer);
        for (int i = 0; i < LIMIT && spool_writer_limit(writer) == 1; i++)
                (void)poll(NULL, 0, 1);
        ck_assert_uint_eq(spool_writer_limit(writer), 2);
        return writer;
}

/* The disk returns zeros at once, without an error. */
START_TEST(test_lost_end_of_a_segment_that_this_process_has_sealed_is_damage)
{
        struct spool_writer *writer = store_and_seal();

        wipe(SEGMENT_HEADER_SIZE);
        start_beside(writer, 0);
        expect_damage();
        stop();
        spool_writer_free(writer);
}
END_TEST

START_TEST(test_empty_spool_has_no_bytes_although_a_segment_was_cut)
{
        struct spool_writer *writer = store_and_seal();
        char *name = mem_printf("%s/0000000000000001.spool", path);

        ck_assert_int_eq(truncate(name, SEGMENT_HEADER_SIZE), 0);
        free(name);
        start_beside(writer, 0);
        for (int i = 0; i < LIMIT && atomic_load(&stats.bytes) + atomic_load(&stats.records) > 0; i++)
                (void)poll(NULL, 0, 1);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
        ck_assert_uint_eq(atomic_load(&stats.bytes), 0);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        stop();
        spool_writer_free(writer);
}
END_TEST

/* Each retry takes its refused records out of the count, and fails before it has read any. */
START_TEST(test_refused_records_are_counted_while_their_segment_cannot_be_opened)
{
        unsigned n_tried = 0;

        segments_store(directory, &stats, 1, 0, 10, NULL);
        fake_fates[0] = FAKE_REFUSED;
        disk_unreadable_from = 9000;
        disk_unreadable_to = 9001;
        start(1);
        await(SPOOL_DRAIN_KEPT);
        ck_assert_uint_eq(atomic_load(&stats.refused), 1);
        atomic_store(&disk_unopenable, "0000000000000001.spool");
        for (int i = 0; i < LIMIT && n_tried < 3; i++) {
                disk_pass_time(10001);
                (void)poll(NULL, 0, 1);
                n_tried += strstr(logged_read(), "Too many open files") != NULL;
        }
        ck_assert_uint_eq(n_tried, 3);
        await(SPOOL_DRAIN_KEPT);
        ck_assert_uint_le(atomic_load(&stats.refused), 1);
        atomic_store(&disk_unopenable, NULL);
        disk_unreadable_from = disk_unreadable_to = 0;
        fake_fates[0] = FAKE_ACKNOWLEDGED;
        disk_pass_time(KEPT_MS);
        await(SPOOL_DRAIN_EMPTY);
        ck_assert_uint_eq(atomic_load(&stats.refused), 0);
}
END_TEST

Suite *
suite_kept_segments(void)
{
        Suite *suite = suite_create("kept_segments");
        TCase *tcase = tcase_create("drain");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_set_timeout(tcase, 90);
        tcase_add_test(tcase, test_log_does_not_grow_with_the_segments_that_stay);
        tcase_add_test(tcase, test_oldest_record_is_that_of_a_segment_that_stays);
        tcase_add_test(tcase, test_segment_that_cannot_be_opened_is_tried_again_soon);
        tcase_add_test(tcase, test_segment_that_was_not_counted_does_not_fill_the_spool);
        tcase_add_test(tcase, test_refused_records_are_counted_while_their_segment_cannot_be_opened);
        tcase_add_test(tcase, test_segment_stays_until_the_disk_returns_all_of_it);
        tcase_add_test(tcase, test_unreadable_segment_is_read_ever_more_rarely);
        tcase_add_test(tcase, test_drain_that_reads_from_a_slow_disk_can_be_stopped);
        tcase_add_test(tcase, test_empty_spool_has_no_bytes_although_a_segment_was_cut);
        tcase_add_loop_test(tcase, test_unreadable_end_that_turns_into_zeros_is_damage, 0, 2);
        tcase_add_test(tcase, test_lost_end_of_a_segment_that_this_process_has_sealed_is_damage);
        suite_add_tcase(suite, tcase);
        return suite;
}
