#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "logged.h"
#include "scratch.h"
#include "segments.h"
#include "spool/segment_writer.h"
#include "spool/spool_writer.h"
#include "suites.h"

/* Segments that are deleted before they are drained: their deliveries are counted as lost. */

static const char *path;
static struct spool_directory *directory;
static struct spool_stats stats;

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
}

static void
teardown(void)
{
        char *command = mem_printf("rm -r %s", path);

        spool_directory_close(directory);
        ck_assert_int_eq(system(command), 0);
        free(command);
        logged_teardown();
        scratch_teardown();
}

/* Store a delivery by a segment's writer. */
static void
store(struct segment_writer *writer)
{
        struct segment_item item = {
            .record = {.received_ms = 1795600000000, .fields = {"field", 5}, .body = {"body", 4}}};
        struct segment_group group = {.n = 1, .bytes = segment_record_size(&item.record)};

        STAILQ_INIT(&group.items);
        STAILQ_INSERT_TAIL(&group.items, &item, entry);
        ck_assert_int_eq(segment_writer_store(writer, &group), 0);
        atomic_fetch_add(&stats.records, 1);
}

START_TEST(test_segment_that_was_deleted_is_found_when_it_ends)
{
        struct segment_writer *writer = segment_writer_new(directory, &stats, 1);

        store(writer);
        store(writer);
        ck_assert_int_eq(spool_directory_remove(directory, 1), 0);
        segment_writer_end(writer);
        ck_assert_ptr_nonnull(strstr(logged_read(), "deliveries that were answered 200 cannot be read back"));
        ck_assert_uint_eq(atomic_load(&stats.lost_records), 2);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
        ck_assert_uint_eq(atomic_load(&stats.bytes), 0);
        segment_writer_free(writer);
}
END_TEST

START_TEST(test_deliveries_of_missing_segments_are_lost)
{
        struct error error;
        struct spool_writer *writer;

        segments_store(directory, &stats, 1, 0, 10, NULL);
        atomic_store(&stats.records, 10);
        writer = spool_writer_new(directory, &stats, 2, &error);
        ck_assert_ptr_nonnull(writer);
        ck_assert_int_eq(spool_directory_remove(directory, 1), 0);
        spool_writer_note_missing(writer, 1); /* another segment was begun since */
        ck_assert_uint_eq(atomic_load(&stats.lost_records), 0);
        spool_writer_note_missing(writer, 2);
        ck_assert_ptr_nonnull(strstr(logged_read(), "segments are missing from the spool"));
        ck_assert_uint_eq(atomic_load(&stats.lost_records), 10);
        ck_assert_uint_eq(atomic_load(&stats.records), 0);
        ck_assert_uint_eq(atomic_load(&stats.segments), 0);
        spool_writer_free(writer);
}
END_TEST

Suite *
suite_missing_segments(void)
{
        Suite *suite = suite_create("missing_segments");
        TCase *tcase = tcase_create("missing_segments");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_test(tcase, test_segment_that_was_deleted_is_found_when_it_ends);
        tcase_add_test(tcase, test_deliveries_of_missing_segments_are_lost);
        suite_add_tcase(suite, tcase);
        return suite;
}
