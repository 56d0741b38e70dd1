#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "disk.h"
#include "logged.h"
#include "scratch.h"
#include "spool/spool_directory.h"
#include "spool/spool_writer.h"
#include "suites.h"

#define ITEMS 200
#define PAUSE_MS 1001 /* in which the writer refuses deliveries after a failure */
#define LARGE ((size_t)8 << 20)
#define NOT_STORED "the spool has failed"
#define DISK_FULL "the disk of the spool is full"

static const char *path;
static struct spool_directory *directory;
static struct spool_stats stats;
static struct spool_writer *writer;
static struct spool_inbox inbox;
static struct spool_item items[ITEMS];
static int wake[2], syncs[2];

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
        ck_assert_int_eq(pipe2(wake, O_NONBLOCK | O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(syncs, O_CLOEXEC), 0);
        spool_inbox_init(&inbox, wake[1]);
        spool_stats_init(&stats, UINT64_C(1) << 40);
        disk_record(path);
        writer = spool_writer_new(directory, &stats, 1, &error);
        ck_assert_ptr_nonnull(writer);
}

static void
stop(void)
{
        spool_writer_free(writer);
        writer = NULL;
}

static void
teardown(void)
{
        char *command = mem_printf("rm -r %s", path);

        stop();
        disk_stop();
        disk_forget();
        spool_directory_close(directory);
        ck_assert_int_eq(system(command), 0);
        free(command);
        logged_teardown();
        scratch_teardown();
}

static void
put(unsigned i, const char *body, size_t len)
{
        items[i] = (struct spool_item){.item.record = {.received_ms = 1795600000000 + i,
                                                       .fields = {"field", 5},
                                                       .body = {body, len}},
                                       .inbox = &inbox};
        spool_writer_put(writer, &items[i]);
}

/* Wait for reports on n items, and check that one byte wakes for each empty inbox at most. */
static void
await(unsigned n)
{
        while (n > 0) {
                struct pollfd readable = {wake[0], POLLIN, 0};
                char bytes[ITEMS];

                ck_assert_int_eq(poll(&readable, 1, 60000), 1);
                ck_assert_int_gt(read(wake[0], bytes, sizeof(bytes)), 0);
                while (n > 0 && spool_inbox_take(&inbox) != NULL)
                        n--;
        }
        ck_assert_ptr_null(spool_inbox_take(&inbox));
        ck_assert_uint_eq(atomic_load(&stats.queued), 0);
}

/* Put a delivery of 100 bytes and return its failure. */
static const char *
store(unsigned i)
{
        static const char body[100];

        put(i, body, sizeof(body));
        await(1);
        return items[i].failure;
}

/* Return the number of records that can be read, and check what the figures say about the segments. */
static unsigned
count(size_t *n_segments)
{
        struct spool_listing listing;
        struct error error;
        uint64_t bytes = 0;
        unsigned n = 0;

        ck_assert_int_eq(spool_directory_list(directory, 0, &listing, &error), 0);
        for (size_t i = 0; i < listing.n_segments; i++) {
                char name[SPOOL_NAME_SIZE];
                struct segment_record record;
                struct segment_reader *reader =
                    segment_reader_open(spool_directory_fd(directory),
                                        spool_directory_name(listing.segments[i].number, name), &error);

                ck_assert_ptr_nonnull(reader);
                while (segment_reader_next(reader, &record) > 0)
                        n++;
                segment_reader_close(reader);
                bytes += listing.segments[i].size;
        }
        *n_segments = listing.n_segments;
        ck_assert_uint_eq(atomic_load(&stats.segments), listing.n_segments);
        ck_assert_uint_eq(atomic_load(&stats.bytes), bytes);
        ck_assert_uint_eq(atomic_load(&stats.records), n); /* all of them will be drained */
        spool_listing_free(&listing);
        return n;
}

static unsigned
count_ops(enum disk_op_kind kind)
{
        unsigned n = 0;

        for (size_t i = 0; i < disk_n_ops; i++)
                n += disk_ops[i].kind == kind;
        return n;
}

/* The calls of the first segment: create, write its header, write, fdatasync, fsync of the directory; then write, fdatasync. */
static const struct {
        enum spool_error io, space; /* as counted for EIO, and for ENOSPC */
        int is_deleted;             /* the segment, in which nothing was answered */
} calls[] = {
    {SPOOL_ERROR_WRITE, SPOOL_ERROR_DISK, 1}, {SPOOL_ERROR_WRITE, SPOOL_ERROR_DISK, 1},
    {SPOOL_ERROR_WRITE, SPOOL_ERROR_DISK, 1}, {SPOOL_ERROR_SYNC, SPOOL_ERROR_SYNC, 1},
    {SPOOL_ERROR_SYNC, SPOOL_ERROR_SYNC, 1},  {SPOOL_ERROR_WRITE, SPOOL_ERROR_DISK, 0},
    {SPOOL_ERROR_SYNC, SPOOL_ERROR_SYNC, 0},
};

START_TEST(test_failure_pauses_and_the_next_segment_begins)
{
        int is_deleted = calls[_i / 2].is_deleted;
        enum spool_error error = _i % 2 == 0 ? calls[_i / 2].io : calls[_i / 2].space;
        size_t n_segments;

        disk_fails_at = _i / 2;
        disk_fails_with = _i % 2 == 0 ? EIO : ENOSPC;
        if (!is_deleted)
                ck_assert_ptr_null(store(0));
        ck_assert_str_eq(store(1), error == SPOOL_ERROR_DISK ? DISK_FULL : NOT_STORED);
        ck_assert_uint_eq(atomic_load(&stats.errors[error]), 1);
        ck_assert_uint_eq(atomic_load(&stats.segments), is_deleted ? 0 : 1);
        ck_assert_ptr_nonnull(spool_writer_refuses(writer, 0));
        ck_assert_ptr_nonnull(store(2)); /* although the disk works again */
        disk_pass_time(PAUSE_MS);
        ck_assert_ptr_nonnull(spool_writer_refuses(writer, 0));
        ck_assert_ptr_null(store(3));
        ck_assert_uint_eq(spool_writer_segment(writer), 2);
        stop();
        ck_assert_uint_ge(count(&n_segments), is_deleted ? 1 : 2);
        ck_assert_uint_eq(n_segments, is_deleted ? 1 : 2);
        ck_assert_uint_eq(atomic_load(&stats.written), is_deleted ? 1 : 2);
}
END_TEST

/* When the end of a segment fails, all that was answered in it is there. */
START_TEST(test_segment_whose_end_fails_is_kept)
{
        size_t n_segments;
        const char *log;

        ck_assert_ptr_null(store(0));
        disk_fails_at = disk_n_calls + _i;
        disk_fails_with = EIO;
        spool_writer_end_segment(writer);
        while (spool_writer_segment(writer) != 0)
                (void)poll(NULL, 0, 1);
        ck_assert(!spool_writer_has_sealed(writer, 1));
        stop();
        for (size_t i = 0; i < SPOOL_N_ERRORS; i++)
                ck_assert_uint_eq(atomic_load(&stats.errors[i]), 0); /* nothing was answered 503 */
        log = logged_read();
        ck_assert_ptr_nonnull(strstr(log, "a segment of the spool could not be sealed"));
        ck_assert_ptr_null(strstr(log, "503"));
        ck_assert_uint_eq(count(&n_segments), 1);
}
END_TEST

START_TEST(test_full_spool_refuses)
{
        size_t n_segments;

        stats.max_bytes = 500;
        ck_assert_ptr_nonnull(spool_writer_refuses(writer, 501));
        ck_assert_ptr_null(spool_writer_refuses(writer, 0)); /* that one would never fit */
        ck_assert_ptr_null(store(0));
        ck_assert_ptr_null(store(1));
        ck_assert_str_eq(spool_writer_refuses(writer, 160), "the spool is full");
        ck_assert_uint_eq(atomic_load(&stats.errors[SPOOL_ERROR_FULL]), 2);
        ck_assert_ptr_nonnull(spool_writer_refuses(writer, 0)); /* it would not fit now either */
        ck_assert_str_eq(store(2), "the spool is full");
        ck_assert_uint_eq(atomic_load(&stats.errors[SPOOL_ERROR_FULL]), 3);
        stats.max_bytes = 1000;
        ck_assert_ptr_null(spool_writer_refuses(writer, 0));
        ck_assert_ptr_null(store(3)); /* without a pause */
        stop();
        ck_assert_uint_eq(count(&n_segments), 3);
}
END_TEST

/* Ask until the writer has tried by itself. Return whether it has failed again. */
static int
fails_again(enum spool_error error)
{
        unsigned n = (unsigned)atomic_load(&stats.errors[error]);

        disk_pass_time(2 * PAUSE_MS);
        for (unsigned i = 0; i < 60000 && atomic_load(&stats.errors[error]) == n; i++) {
                if (spool_writer_refuses(writer, 0) == NULL)
                        return 0;
                (void)poll(NULL, 0, 1);
        }
        return 1;
}

/* Nobody sends a delivery to a receiver that is not ready: it must find out by itself that the disk is well. */
START_TEST(test_spool_that_fails_refuses_until_something_can_be_stored)
{
        enum spool_error error = _i < 2 ? SPOOL_ERROR_DISK : SPOOL_ERROR_WRITE;
        size_t n_segments = 0;
        ck_assert_ptr_null(store(0));
        disk_fails_at = disk_n_calls;
        disk_fails_with = _i < 2 ? ENOSPC : EROFS;
        ck_assert_ptr_nonnull(store(1));
        for (unsigned i = 0; i < 3; i++) {
                disk_fails_at = disk_n_calls;
                ck_assert(fails_again(error));
        }
        disk_fails_at = -1;
        atomic_store(&disk_room, 4096); /* for the header of a segment */
        ck_assert(_i >= 2 || fails_again(error));
        ck_assert_str_eq(spool_writer_refuses(writer, 0), _i < 2 ? DISK_FULL : NOT_STORED);
        for (unsigned i = 0; _i % 2 == 0 && i < 100 && store(2) != NULL; i++)
                disk_pass_time(PAUSE_MS);
        atomic_store(&disk_room, _i % 2 == 0 ? 4096 : 1 << 20);
        ck_assert(!fails_again(error));
        stop();
        ck_assert_uint_eq(count(&n_segments), _i % 2 == 0 ? 2 : 1);
        ck_assert_uint_eq(n_segments, 2);
}
END_TEST

/* Have syncs wait until release() is called so often. */
static void
hold_syncs(void)
{
        disk_syncs_wait_for = syncs[0];
}

static void
release(unsigned n)
{
        while (n-- > 0)
                ck_assert_int_eq(write(syncs[1], "s", 1), 1);
}

static void
await_busy(void)
{
        for (unsigned i = 0; i < 60000 && spool_writer_segment(writer) == 0; i++)
                (void)poll(NULL, 0, 1);
        ck_assert_uint_ne(spool_writer_segment(writer), 0);
}

START_TEST(test_one_sync_serves_all_that_wait)
{
        size_t n_segments;

        hold_syncs();
        put(0, "body", 4);
        await_busy();
        for (unsigned i = 1; i < ITEMS; i++)
                put(i, "body", 4);
        ck_assert_ptr_null(spool_inbox_take(&inbox)); /* nothing is answered before its sync */
        release(3);
        await(ITEMS);
        ck_assert_uint_eq(count_ops(DISK_SYNC), 2);
        stop();
        ck_assert_uint_eq(count(&n_segments), ITEMS);
}
END_TEST

START_TEST(test_stuck_disk_refuses)
{
        hold_syncs();
        put(0, "body", 4);
        await_busy();
        ck_assert_ptr_null(spool_writer_refuses(writer, 100));
        disk_pass_time(10001);
        ck_assert_str_eq(spool_writer_refuses(writer, 100), "the disk of the spool does not answer");
        ck_assert_int_gt(spool_writer_busy_ms(writer), 10000);
        release(2);
        await(1);
        ck_assert_ptr_null(items[0].failure);
        for (unsigned i = 0; i < 60000 && spool_writer_refuses(writer, 100) != NULL; i++)
                (void)poll(NULL, 0, 1); /* the writer reports before it is idle */
        ck_assert_ptr_null(spool_writer_refuses(writer, 100));
}
END_TEST

START_TEST(test_all_that_waits_is_written_at_the_end)
{
        size_t n_segments;

        for (unsigned i = 0; i < ITEMS; i++)
                put(i, "body", 4);
        stop();
        await(ITEMS);
        for (unsigned i = 0; i < ITEMS; i++)
                ck_assert_ptr_null(items[i].failure);
        ck_assert_uint_eq(count(&n_segments), ITEMS);
        ck_assert_uint_eq(n_segments, 1);
        ck_assert_uint_eq(atomic_load(&stats.records), ITEMS);
        ck_assert_int_eq(spool_stats_oldest_ms(&stats), items[0].item.record.received_ms);
}
END_TEST

START_TEST(test_reader_of_an_inbox_is_woken_once)
{
        char bytes[ITEMS];

        hold_syncs();
        put(0, "body", 4);
        await_busy();
        for (unsigned i = 1; i < ITEMS; i++)
                put(i, "body", 4);
        release(3);
        stop();
        ck_assert_int_eq(read(wake[0], bytes, sizeof(bytes)), 1); /* the inbox was empty once */
        for (unsigned i = 0; i < ITEMS; i++)
                ck_assert_ptr_eq(spool_inbox_take(&inbox), &items[i]);
}
END_TEST

START_TEST(test_renamed_directory_is_not_written)
{
        const char *elsewhere = scratch_path("elsewhere");
        size_t n_segments;

        ck_assert_ptr_null(store(0));
        ck_assert_int_eq(rename(path, elsewhere), 0);
        ck_assert_ptr_nonnull(store(1));
        ck_assert_uint_eq(atomic_load(&stats.errors[SPOOL_ERROR_PLACE]), 1);
        ck_assert_int_eq(rename(elsewhere, path), 0);
        disk_pass_time(PAUSE_MS);
        ck_assert_ptr_null(store(2));
        stop();
        ck_assert_uint_ge(count(&n_segments), 2);
}
END_TEST

START_TEST(test_deleted_segment_is_not_written)
{
        char name[SPOOL_NAME_SIZE];
        size_t n_segments;

        ck_assert_ptr_null(store(0));
        ck_assert_int_eq(unlinkat(spool_directory_fd(directory), spool_directory_name(1, name), 0), 0);
        ck_assert_ptr_nonnull(store(1));
        ck_assert_uint_eq(atomic_load(&stats.errors[SPOOL_ERROR_PLACE]), 1);
        ck_assert_ptr_nonnull(strstr(logged_read(), "deliveries that were answered 200 cannot be read back"));
        disk_pass_time(PAUSE_MS);
        ck_assert_ptr_null(store(2));
        stop();
        ck_assert_uint_eq(count(&n_segments), 1);
        ck_assert_uint_eq(atomic_load(&stats.records), 1);
}
END_TEST

START_TEST(test_segments_end_before_they_exceed_their_size)
{
        char *body = mem_alloc(LARGE);
        struct spool_listing listing;
        struct error error;
        size_t n_segments;

        for (unsigned i = 0; i < 9; i++) {
                put(i, body, LARGE);
                await(1);
                ck_assert_ptr_null(items[i].failure);
        }
        stop();
        ck_assert_uint_eq(count(&n_segments), 9);
        ck_assert_uint_eq(n_segments, 2);
        ck_assert_int_eq(spool_directory_list(directory, 0, &listing, &error), 0);
        ck_assert_uint_le(listing.segments[0].size, SEGMENT_SIZE + SEGMENT_HEAD_SIZE);
        ck_assert_uint_gt(listing.segments[0].size, 7 * LARGE);
        spool_listing_free(&listing);
        free(body);
}
END_TEST

Suite *
suite_spool_writer(void)
{
        Suite *suite = suite_create("spool_writer");
        TCase *tcase = tcase_create("spool_writer");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_set_timeout(tcase, 60);
        tcase_add_loop_test(tcase, test_failure_pauses_and_the_next_segment_begins, 0,
                            2 * (int)(sizeof(calls) / sizeof(calls[0])));
        tcase_add_loop_test(tcase, test_segment_whose_end_fails_is_kept, 0, 2);
        tcase_add_test(tcase, test_full_spool_refuses);
        tcase_add_loop_test(tcase, test_spool_that_fails_refuses_until_something_can_be_stored, 0, 4);
        tcase_add_test(tcase, test_one_sync_serves_all_that_wait);
        tcase_add_test(tcase, test_stuck_disk_refuses);
        tcase_add_test(tcase, test_all_that_waits_is_written_at_the_end);
        tcase_add_test(tcase, test_reader_of_an_inbox_is_woken_once);
        tcase_add_test(tcase, test_renamed_directory_is_not_written);
        tcase_add_test(tcase, test_deleted_segment_is_not_written);
        tcase_add_test(tcase, test_segments_end_before_they_exceed_their_size);
        suite_add_tcase(suite, tcase);
        return suite;
}
