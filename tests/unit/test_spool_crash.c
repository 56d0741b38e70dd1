#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "disk.h"
#include "scratch.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"
#include "spool/spool_writer.h"
#include "suites.h"

/*
 * The states in which a crash or a power failure may leave the spool. The real writer stores deliveries, and what it does with
 * the disk is recorded. A state is a prefix of that record, with any part of what was not synced by then: whole, missing, cut
 * off, some blocks of it, or zeros, and with or without names that were not synced. Of each state, the reader must return every
 * delivery that was answered, unchanged, and nothing else than deliveries that were put.
 */

#define DELIVERIES 90
#define BATCH 5          /* at most, in one group */
#define SEGMENT_EVERY 13 /* batches after which the segment is ended */
#define VARIANTS 150     /* of each prefix */
#define BLOCK 512
#define MAX_BODY 3000

struct put {
        struct spool_item item;
        char fields[64];
        size_t n_fields;
        char body[MAX_BODY];
        int is_answered;
};

static struct put all[DELIVERIES];
static struct spool_inbox inbox;
static int wake[2];
static uint64_t seed;

/* What the states of one run have shown. */
static struct {
        size_t n;
        size_t lost;    /* states without a delivery that was answered */
        size_t changed; /* with one that was never put, or another body */
        size_t damaged; /* that are reported as damage */
} found;

static uint32_t
draw(uint32_t below)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(seed >> 33) % below;
}

static void
setup(void)
{
        scratch_setup();
        ck_assert_int_eq(pipe2(wake, O_NONBLOCK | O_CLOEXEC), 0);
        spool_inbox_init(&inbox, wake[1]);
        memset(all, 0, sizeof(all));
        memset(&found, 0, sizeof(found));
        seed = 1;
}

static void
prepare(unsigned i)
{
        struct put *put = &all[i];
        size_t len = draw(MAX_BODY);
        char id[16];

        (void)snprintf(id, sizeof(id), "%u", i);
        for (size_t b = 0; b < len; b++)
                put->body[b] = (char)draw(256);
        ck_assert_int_eq(segment_add_field((uint8_t *)put->fields, sizeof(put->fields), &put->n_fields, "",
                                           (struct span){id, strlen(id)}),
                         0);
        put->item.inbox = &inbox;
        put->item.item.record = (struct segment_record){.received_ms = 1795600000000 + i,
                                                        .fields = {put->fields, put->n_fields},
                                                        .body = {put->body, len}};
}

/* Wait for the reports of n deliveries. */
static void
await(unsigned n)
{
        while (n > 0) {
                struct pollfd readable = {wake[0], POLLIN, 0};
                struct spool_item *item;
                char bytes[16];

                ck_assert_int_eq(poll(&readable, 1, 60000), 1);
                ck_assert_int_gt(read(wake[0], bytes, sizeof(bytes)), 0);
                while ((item = spool_inbox_take(&inbox)) != NULL) {
                        struct put *put = (struct put *)item;

                        n--;
                        put->is_answered = item->failure == NULL;
                        if (put->is_answered)
                                disk_note_answer((unsigned)(put - all));
                }
        }
}

/* Store all deliveries, in groups of up to BATCH. */
static void
store_all(struct spool_writer *writer)
{
        for (unsigned i = 0, batches = 0; i < DELIVERIES; batches++) {
                unsigned n = 1 + draw(BATCH);

                n = n > DELIVERIES - i ? DELIVERIES - i : n;
                for (unsigned k = 0; k < n; k++) {
                        prepare(i + k);
                        spool_writer_put(writer, &all[i + k].item);
                }
                await(n);
                i += n;
                if (batches % SEGMENT_EVERY == SEGMENT_EVERY - 1)
                        spool_writer_end_segment(writer);
        }
}

static void
record_run(const char *path)
{
        struct error error;
        struct spool_directory *directory = spool_directory_open(path, 1, &error);
        struct spool_stats stats;
        struct spool_writer *writer;

        spool_stats_init(&stats, UINT64_C(1) << 40);
        disk_record(path);
        writer = spool_writer_new(directory, &stats, 1, &error);
        ck_assert_ptr_nonnull(writer);
        store_all(writer);
        spool_writer_free(writer);
        spool_directory_close(directory);
        disk_stop();
}

/* A file at some point of the run. */
struct model {
        int exists, is_named; /* its name is synced */
        uint8_t *bytes;
        size_t size, synced;
};

static void
apply(struct model *models, const struct disk_op *op)
{
        struct model *model = &models[op->file];

        switch (op->kind) {
        case DISK_CREATE:
                model->exists = 1;
                break;
        case DISK_WRITE:
                model->bytes = mem_resize(model->bytes, op->offset + op->len, 1);
                memcpy(model->bytes + op->offset, op->bytes, op->len);
                model->size = op->offset + op->len;
                break;
        case DISK_SYNC:
                model->synced = model->size;
                break;
        case DISK_SYNC_DIRECTORY:
                for (unsigned f = 0; f < disk_n_files; f++)
                        models[f].is_named = models[f].exists;
                break;
        case DISK_REMOVE:
                model->exists = 0;
                break;
        case DISK_SYNC_FAILED:
        case DISK_ANSWER:
                break;
        }
}

/* Choose what a crash leaves of the bytes that were not synced. Return the size of the file. */
static size_t
tear(const struct model *model, uint8_t *bytes)
{
        size_t left = model->size - model->synced;

        if (model->size > 0)
                memcpy(bytes, model->bytes, model->size);
        switch (left == 0 ? 1 : draw(5)) {
        case 0:
                return model->synced;
        case 1:
                return model->size;
        case 2:
                return model->synced + draw((uint32_t)left);
        case 3:
                memset(bytes + model->synced, 0, left);
                return model->size;
        default:
                for (size_t at = model->synced; at < model->size;) {
                        size_t end =
                            (at / BLOCK + 1) * BLOCK < model->size ? (at / BLOCK + 1) * BLOCK : model->size;

                        if (draw(2))
                                memset(bytes + at, 0, end - at);
                        at = end;
                }
                return model->synced + 1 + draw((uint32_t)left);
        }
}

static void
write_state(int directory, const struct model *models)
{
        for (unsigned f = 0; f < disk_n_files; f++) {
                const struct model *model = &models[f];
                uint8_t *bytes;
                size_t size;
                int fd;

                if (!model->exists || (!model->is_named && draw(2)))
                        continue;
                bytes = mem_alloc(model->size + 1);
                size = tear(model, bytes);
                fd = openat(directory, disk_names[f], O_WRONLY | O_CREAT | O_TRUNC, 0600);
                ck_assert_int_ge(fd, 0);
                ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
                ck_assert_int_eq(close(fd), 0);
                free(bytes);
        }
}

/* Return the number of a record that was put, or -1 if none is equal. */
static int
identify(const struct segment_record *record)
{
        struct record_header field;
        char id[16];
        size_t at = 0;
        unsigned i;

        if (segment_next_field(record->fields, &at, &field) != 1 || at != record->fields.len)
                return -1;
        (void)snprintf(id, sizeof(id), "%.*s", (int)field.value.len, field.value.data);
        i = (unsigned)strtoul(id, NULL, 10);
        if (i >= DELIVERIES || all[i].item.item.record.body.len != record->body.len ||
            all[i].item.item.record.received_ms != record->received_ms ||
            all[i].item.item.record.fields.len != record->fields.len ||
            memcmp(all[i].fields, record->fields.data, record->fields.len) != 0)
                return -1;
        return memcmp(all[i].body, record->body.data, record->body.len) == 0 ? (int)i : -1;
}

/* Read a state as the drain does, and compare it with what was answered. */
static void
check_state(const char *path, const uint8_t *answered)
{
        struct error error;
        struct spool_directory *directory = spool_directory_open(path, 0, &error);
        struct spool_listing listing;
        uint8_t seen[DELIVERIES] = {0};
        int changed = 0, lost = 0, damaged = 0;

        ck_assert_int_eq(spool_directory_list(directory, 0, &listing, &error), 0);
        for (size_t s = 0; s < listing.n_segments; s++) {
                char name[SPOOL_NAME_SIZE];
                struct segment_reader *reader =
                    segment_reader_open(spool_directory_fd(directory),
                                        spool_directory_name(listing.segments[s].number, name), &error);
                struct segment_summary summary;
                struct segment_record record;

                ck_assert_ptr_nonnull(reader);
                while (segment_reader_next(reader, &record) > 0) {
                        int i = identify(&record);

                        if (i < 0)
                                changed = 1;
                        else
                                seen[i] = 1;
                }
                segment_reader_summary(reader, &summary);
                damaged |= summary.damaged_bytes > 0;
                segment_reader_close(reader);
                ck_assert_int_eq(unlinkat(spool_directory_fd(directory), name, 0), 0);
        }
        spool_listing_free(&listing);
        spool_directory_close(directory);
        for (unsigned i = 0; i < DELIVERIES; i++)
                lost |= answered[i] && !seen[i];
        found.n++;
        found.lost += (size_t)lost;
        found.changed += (size_t)changed;
        found.damaged += (size_t)damaged;
}

/* Make the states of each prefix of the record, in another directory. */
static void
check_states(void)
{
        const char *path = scratch_path("state");
        struct model models[DISK_MAX_FILES] = {0};
        uint8_t answered[DELIVERIES] = {0};
        int directory;

        ck_assert_int_eq(mkdir(path, 0700), 0);
        directory = open(path, O_RDONLY | O_DIRECTORY);
        for (size_t p = 0; p < disk_n_ops; p++) {
                apply(models, &disk_ops[p]);
                if (disk_ops[p].kind == DISK_ANSWER)
                        answered[disk_ops[p].answer] = 1;
                for (unsigned v = 0; v < (disk_ops[p].kind == DISK_ANSWER ? 10 : VARIANTS); v++) {
                        write_state(directory, models);
                        check_state(path, answered);
                }
        }
        for (unsigned f = 0; f < disk_n_files; f++)
                free(models[f].bytes);
        ck_assert_int_eq(close(directory), 0);
        ck_assert_int_eq(rmdir(path), 0);
}

/* Run the writer, and check the states. */
static void
run(void)
{
        const char *path = scratch_path("spool");
        char *command;

        ck_assert_int_eq(mkdir(path, 0700), 0);
        record_run(path);
        check_states();
        printf("%zu states of %zu operations on %u files: %zu lost, %zu changed, %zu taken for damage\n",
               found.n, disk_n_ops, disk_n_files, found.lost, found.changed, found.damaged);
        disk_forget();
        command = mem_printf("rm -r %s", path);
        ck_assert_int_eq(system(command), 0);
        free(command);
}

START_TEST(test_each_state_after_a_crash_has_all_deliveries_that_were_answered)
{
        run();
        ck_assert_uint_ge(found.n, 5000);
        for (unsigned i = 0; i < DELIVERIES; i++)
                ck_assert(all[i].is_answered);
        ck_assert_uint_eq(found.lost, 0);
        ck_assert_uint_eq(found.changed, 0);
        ck_assert_uint_eq(found.damaged, 0);
}
END_TEST

START_TEST(test_answers_before_the_sync_are_found)
{
        disk_ignores_syncs = 1;
        run();
        ck_assert_uint_gt(found.lost, 0);
}
END_TEST

START_TEST(test_missing_sync_of_the_directory_is_found)
{
        disk_ignores_directory_syncs = 1;
        run();
        ck_assert_uint_gt(found.lost, 0);
}
END_TEST

/* Let one call of the disk fail: what was answered can be read, and no file is synced again after its sync has failed. */
START_TEST(test_failing_disk_loses_nothing_that_was_answered)
{
        const char *path = scratch_path("spool");
        struct model models[DISK_MAX_FILES] = {0};
        uint8_t answered[DELIVERIES] = {0}, has_failed[DISK_MAX_FILES] = {0};
        unsigned n_answered = 0;
        char *command;

        ck_assert_int_eq(mkdir(path, 0700), 0);
        disk_fails_at = _i / 2;
        disk_fails_with = _i % 2 == 0 ? 5 /* EIO */ : 28 /* ENOSPC */;
        record_run(path);
        for (size_t p = 0; p < disk_n_ops; p++) {
                apply(models, &disk_ops[p]);
                if (disk_ops[p].kind == DISK_ANSWER)
                        answered[disk_ops[p].answer] = 1;
                if (disk_ops[p].kind == DISK_SYNC || disk_ops[p].kind == DISK_WRITE)
                        ck_assert(!has_failed[disk_ops[p].file]);
                has_failed[disk_ops[p].file] |= disk_ops[p].kind == DISK_SYNC_FAILED;
        }
        check_state(path, answered);
        for (unsigned i = 0; i < DELIVERIES; i++)
                n_answered += all[i].is_answered != 0;
        ck_assert_uint_lt(n_answered, DELIVERIES); /* those of the failed call, and of the pause after it */
        ck_assert_uint_eq(found.lost, 0);
        ck_assert_uint_eq(found.changed, 0);
        for (unsigned f = 0; f < disk_n_files; f++)
                free(models[f].bytes);
        disk_forget();
        command = mem_printf("rm -r %s", path);
        ck_assert_int_eq(system(command), 0);
        free(command);
}
END_TEST

Suite *
suite_spool_crash(void)
{
        Suite *suite = suite_create("spool_crash");
        TCase *tcase = tcase_create("states"), *failing = tcase_create("failing");

        tcase_add_checked_fixture(tcase, setup, scratch_teardown);
        tcase_add_checked_fixture(failing, setup, scratch_teardown);
        tcase_set_timeout(tcase, 300);
        tcase_set_timeout(failing, 60);
        tcase_add_test(tcase, test_each_state_after_a_crash_has_all_deliveries_that_were_answered);
        tcase_add_test(tcase, test_answers_before_the_sync_are_found);
        tcase_add_test(tcase, test_missing_sync_of_the_directory_is_found);
        tcase_add_loop_test(failing, test_failing_disk_loses_nothing_that_was_answered, 0, 24);
        suite_add_tcase(suite, tcase);
        suite_add_tcase(suite, failing);
        return suite;
}
