#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/directory.h"
#include "disk.h"
#include "logged.h"
#include "scratch.h"
#include "spool/spool.h"
#include "spool/spool_directory.h"
#include "suites.h"

static const char *path;
static struct spool_directory *directory;

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
}

/* The files are few, and the directory may have gone. */
static void
teardown(void)
{
        struct spool_listing listing;
        struct error error;
        char name[SPOOL_NAME_SIZE];

        ck_assert_int_eq(spool_directory_list(directory, 0, &listing, &error), 0);
        for (size_t i = 0; i < listing.n_segments; i++)
                ck_assert_int_eq(spool_directory_remove(directory, listing.segments[i].number), 0);
        for (size_t i = 0; i < listing.n_damaged; i++)
                ck_assert_int_eq(unlinkat(spool_directory_fd(directory),
                                          spool_directory_damaged_name(listing.damaged[i].number, name), 0),
                                 0);
        (void)unlinkat(spool_directory_fd(directory), "lock", 0);
        spool_listing_free(&listing);
        spool_directory_close(directory);
        ck_assert_int_eq(rmdir(path), 0);
        logged_teardown();
        scratch_teardown();
}

/* Make a file in the directory, with this content. */
static void
make(const char *name, const char *content)
{
        int fd = openat(spool_directory_fd(directory), name, O_WRONLY | O_CREAT | O_EXCL, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
        ck_assert_int_eq(close(fd), 0);
}

static void
drop(const char *name)
{
        ck_assert_int_eq(unlinkat(spool_directory_fd(directory), name, 0), 0);
}

static void
list(struct spool_listing *listing)
{
        struct error error;

        ck_assert_int_eq(spool_directory_list(directory, 1, listing, &error), 0);
}

START_TEST(test_directory_is_locked_by_one_process)
{
        struct error error;
        struct spool_directory *first = spool_directory_open(path, 1, &error), *reader;

        ck_assert_ptr_nonnull(first);
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_ptr_null(spool_directory_open(path, 1, &error));
                ck_assert_ptr_nonnull(strstr(error.text, "is in use by another process"));
                /* Even if somebody deletes the file because of this message. */
                (void)unlinkat(spool_directory_fd(first), "lock", 0);
        }
        reader = spool_directory_open(path, 0, &error);
        ck_assert_ptr_nonnull(reader);
        spool_directory_close(reader);
        spool_directory_close(first);
        first = spool_directory_open(path, 1, &error);
        ck_assert_ptr_nonnull(first);
        spool_directory_close(first);
}
END_TEST

START_TEST(test_lock_that_is_no_file_is_refused)
{
        struct error error;

        ck_assert_int_eq(symlinkat("/dev/null", spool_directory_fd(directory), "lock"), 0);
        ck_assert_ptr_null(spool_directory_open(path, 1, &error));
        ck_assert_ptr_nonnull(strstr(error.text, "cannot lock the file lock in "));
}
END_TEST

START_TEST(test_segments_are_listed_by_their_numbers)
{
        struct spool_listing listing;

        make("00000000000000ff.spool", "abc");
        make("0000000000000010.spool", "");
        make("0000000000000009.spool.damaged", "damaged");
        make("4000000000000000.spool", "last");
        list(&listing);
        ck_assert_uint_eq(listing.n_segments, 3);
        ck_assert_uint_eq(listing.segments[0].number, 16);
        ck_assert_uint_eq(listing.segments[0].size, 0);
        ck_assert_uint_eq(listing.segments[1].number, 255);
        ck_assert_uint_eq(listing.segments[1].size, 3);
        ck_assert_uint_eq(listing.segments[2].number, SPOOL_NUMBER_MAX);
        ck_assert_uint_eq(listing.n_damaged, 1);
        ck_assert_uint_eq(listing.damaged[0].number, 9);
        ck_assert_uint_eq(listing.damaged_bytes, 7);
        ck_assert_uint_eq(listing.last, SPOOL_NUMBER_MAX);
        spool_listing_free(&listing);
        ck_assert_str_eq(logged_read(), "");
}
END_TEST

/* Names that are no segment's, also one whose number leaves no room for later ones. */
static const char *const foreign[] = {"4000000000000001.spool",
                                      "ffffffffffffffff.spool",
                                      "ffffffffffffffff.spool.damaged",
                                      "0000000000000001.spool~",
                                      "0000000000000001.spool.damaged.damaged",
                                      "000000000000001.spool",
                                      "00000000000000001.spool",
                                      "000000000000000A.spool",
                                      "0000000000000001",
                                      "readme"};

START_TEST(test_foreign_files_are_ignored_and_logged)
{
        struct spool_listing listing;
        const char *text;

        make(foreign[_i], "content");
        list(&listing);
        ck_assert_uint_eq(listing.n_segments, 0);
        ck_assert_uint_eq(listing.n_damaged, 0);
        ck_assert_uint_eq(listing.n_others, 1);
        ck_assert_uint_eq(listing.last, 0);
        spool_listing_free(&listing);
        text = logged_read();
        ck_assert_ptr_nonnull(strstr(text, "a file in the spool is not a segment and is ignored"));
        ck_assert_ptr_nonnull(strstr(text, foreign[_i]));
        drop(foreign[_i]);
}
END_TEST

START_TEST(test_only_regular_files_are_segments)
{
        struct spool_listing listing;
        int fd = spool_directory_fd(directory);

        ck_assert_int_eq(mkfifoat(fd, "0000000000000001.spool", 0600), 0);
        ck_assert_int_eq(symlinkat("/etc/passwd", fd, "0000000000000002.spool"), 0);
        ck_assert_int_eq(mkdirat(fd, "0000000000000003.spool", 0700), 0);
        ck_assert_int_eq(symlinkat("/etc/passwd", fd, "0000000000000004.spool.damaged"), 0);
        list(&listing);
        ck_assert_uint_eq(listing.n_segments, 0);
        ck_assert_uint_eq(listing.n_damaged, 0);
        ck_assert_uint_eq(listing.last, 0);
        spool_listing_free(&listing);
        ck_assert_int_eq(spool_directory_create(directory, 2), -1);
        ck_assert_int_eq(errno, EEXIST);
        drop("0000000000000001.spool");
        drop("0000000000000002.spool");
        ck_assert_int_eq(unlinkat(fd, "0000000000000003.spool", AT_REMOVEDIR), 0);
        drop("0000000000000004.spool.damaged");
}
END_TEST

START_TEST(test_renamed_directory_is_noticed)
{
        const char *elsewhere = scratch_path("elsewhere");

        ck_assert(spool_directory_is_in_place(directory));
        ck_assert_int_eq(rename(path, elsewhere), 0);
        ck_assert(!spool_directory_is_in_place(directory));
        ck_assert_int_eq(mkdir(path, 0700), 0); /* another one in its place */
        ck_assert(!spool_directory_is_in_place(directory));
        ck_assert_int_eq(rmdir(path), 0);
        ck_assert_int_eq(symlink(elsewhere, path), 0);
        ck_assert(spool_directory_is_in_place(directory));
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(rename(elsewhere, path), 0);
        ck_assert(spool_directory_is_in_place(directory));
}
END_TEST

/* Open the spool, store a delivery, and close it. Return the number of the last segment. */
static uint64_t
store_one(void)
{
        struct spool_listing listing;
        struct spool_inbox inbox;
        struct spool_item item = {.item.record = {.received_ms = 1, .fields = {"x", 1}, .body = {"body", 4}},
                                  .inbox = &inbox};
        struct error error;
        struct spool *spool = spool_open(path, UINT64_C(1) << 30, &error);
        uint64_t number;

        ck_assert_ptr_nonnull(spool);
        spool_inbox_init(&inbox, -1);
        spool_writer_put(spool_writer(spool), &item);
        spool_close(spool);
        list(&listing);
        ck_assert_uint_eq(listing.n_segments, 1);
        number = listing.segments[0].number;
        ck_assert_uint_eq(listing.last, number);
        spool_listing_free(&listing);
        return number;
}

/* A segment that was put aside keeps its number, so that another one cannot be put aside over it. */
START_TEST(test_numbers_of_damaged_segments_are_not_reused)
{
        make("3000000000000005.spool", "");
        ck_assert_int_eq(spool_directory_put_aside(directory, UINT64_C(0x3000000000000005)), 0);
        ck_assert_uint_eq(store_one(), UINT64_C(0x3000000000000006));
}
END_TEST

/*
 * To make room, the segments of several processes are moved into one directory. Two processes may have been
 * started at the same time, on machines with the same clock.
 */
START_TEST(test_numbers_of_moved_segments_are_not_reused)
{
        uint64_t differing = 0, first = 0;
        char name[SPOOL_NAME_SIZE];

        for (int i = 0; i < 8; i++) {
                uint64_t begun_ms = (uint64_t)clock_now_ms(), number = store_one();

                ck_assert_uint_ge(number >> 20, begun_ms);
                ck_assert_uint_le(number >> 20, (uint64_t)clock_now_ms());
                first = i == 0 ? number : first;
                differing |= number ^ first;
                drop(spool_directory_name(number, name));
        }
        ck_assert_uint_ne(differing & 0xfffff, 0);
}
END_TEST

/* A process may have been killed between creating the directory and syncing the one above. */
START_TEST(test_name_of_the_directory_is_synced_whoever_created_it)
{
        const char *above = scratch_path("."), *made = scratch_path("made");
        struct error error;

        for (unsigned i = 0; i < 2; i++) {
                disk_record(above);
                ck_assert_int_eq(directory_make(made, &error), 0);
                disk_stop();
                ck_assert_uint_eq(disk_n_ops, 1);
                ck_assert_int_eq(disk_ops[0].kind, DISK_SYNC_DIRECTORY);
                disk_forget();
        }
        ck_assert_int_eq(rmdir(made), 0);
}
END_TEST

START_TEST(test_directory_is_not_created_without_the_one_above)
{
        struct error error;

        ck_assert_int_eq(directory_make(scratch_path("no/spool"), &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "No such file or directory"));
        ck_assert_ptr_null(spool_directory_open(scratch_path("no/spool"), 1, &error));
}
END_TEST

/* An error is not the end of the directory. */
START_TEST(test_directory_that_cannot_be_read_to_its_end_is_not_listed)
{
        struct spool_listing listing;
        struct error error;

        make("0000000000000001.spool", "abc");
        disk_lists = _i;
        ck_assert_int_eq(spool_directory_list(directory, 0, &listing, &error), -1);
        disk_lists = -1;
        ck_assert_ptr_nonnull(strstr(error.text, "cannot read the directory"));
        ck_assert_ptr_nonnull(strstr(error.text, "Input/output error"));
        ck_assert_ptr_null(listing.segments);
        disk_lists = _i;
        ck_assert_ptr_null(spool_open(path, UINT64_C(1) << 30, &error));
        disk_lists = -1;
        ck_assert_ptr_nonnull(strstr(error.text, "Input/output error"));
}
END_TEST

Suite *
suite_spool_directory(void)
{
        Suite *suite = suite_create("spool_directory");
        TCase *tcase = tcase_create("spool_directory");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_test(tcase, test_directory_is_locked_by_one_process);
        tcase_add_test(tcase, test_lock_that_is_no_file_is_refused);
        tcase_add_test(tcase, test_segments_are_listed_by_their_numbers);
        tcase_add_loop_test(tcase, test_foreign_files_are_ignored_and_logged, 0,
                            (int)(sizeof(foreign) / sizeof(foreign[0])));
        tcase_add_loop_test(tcase, test_directory_that_cannot_be_read_to_its_end_is_not_listed, 0, 4);
        tcase_add_test(tcase, test_only_regular_files_are_segments);
        tcase_add_test(tcase, test_renamed_directory_is_noticed);
        tcase_add_test(tcase, test_numbers_of_damaged_segments_are_not_reused);
        tcase_add_test(tcase, test_numbers_of_moved_segments_are_not_reused);
        tcase_add_test(tcase, test_name_of_the_directory_is_synced_whoever_created_it);
        tcase_add_test(tcase, test_directory_is_not_created_without_the_one_above);
        suite_add_tcase(suite, tcase);
        return suite;
}
