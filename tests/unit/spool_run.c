#include "spool_run.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "spool/spool_directory.h"

#define BATCH 5         /* deliveries that a thread puts at once, at most */
#define SEGMENT_EVERY 5 /* batches of the first thread after which the segment is ended */
#define PAUSE_MS 1001   /* in which the writer refuses deliveries after a failure */

struct run_delivery run_deliveries[RUN_DELIVERIES];

/* A thread that puts deliveries. */
struct putter {
        pthread_t thread;
        unsigned first; /* delivery */
        struct spool_writer *writer;
        struct spool_inbox inbox;
        int wake[2];
        uint64_t seed;
};

struct drainer {
        pthread_t thread;
        const struct spool_directory *directory;
        const struct spool_writer *writer;
        atomic_int is_stopping;
};

static uint32_t
draw(struct putter *putter, uint32_t below)
{
        putter->seed = putter->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(putter->seed >> 33) % below;
}

static void
put(struct putter *putter, unsigned i)
{
        struct run_delivery *delivery = &run_deliveries[i];
        size_t len = draw(putter, 8) == 0 ? 0 : draw(putter, RUN_MAX_BODY);
        char id[16];

        (void)snprintf(id, sizeof(id), "%u", i);
        for (size_t b = 0; b < len; b++)
                delivery->body[b] = (char)draw(putter, 256);
        ck_assert_int_eq(segment_add_field((uint8_t *)delivery->fields, sizeof(delivery->fields),
                                           &delivery->n_fields, "", (struct span){id, strlen(id)}),
                         0);
        delivery->item.inbox = &putter->inbox;
        delivery->item.item.record = (struct segment_record){.received_ms = 1795600000000 + i,
                                                             .fields = {delivery->fields, delivery->n_fields},
                                                             .body = {delivery->body, len}};
        spool_writer_put(putter->writer, &delivery->item);
}

/* Wait for the reports of n deliveries. */
static void
await(struct putter *putter, unsigned n)
{
        int has_failed = 0;

        while (n > 0) {
                struct pollfd readable = {putter->wake[0], POLLIN, 0};
                struct spool_item *item;
                char bytes[16];

                ck_assert_int_eq(poll(&readable, 1, 60000), 1);
                ck_assert_int_gt(read(putter->wake[0], bytes, sizeof(bytes)), 0);
                while ((item = spool_inbox_take(&putter->inbox)) != NULL) {
                        struct run_delivery *delivery = (struct run_delivery *)item;

                        n--;
                        delivery->is_answered = item->failure == NULL;
                        has_failed |= item->failure != NULL;
                        if (delivery->is_answered)
                                disk_note(DISK_ANSWER, (unsigned)(delivery - run_deliveries));
                }
        }
        if (has_failed)
                disk_pass_time(PAUSE_MS);
}

static void *
put_all(void *arg)
{
        struct putter *putter = arg;

        for (unsigned i = 0, batches = 1; i < RUN_EACH; batches++) {
                unsigned n = 1 + draw(putter, BATCH);

                n = n > RUN_EACH - i ? RUN_EACH - i : n;
                for (unsigned k = 0; k < n; k++)
                        put(putter, putter->first + i + k);
                await(putter, n);
                i += n;
                if (putter->first == 0 && batches % SEGMENT_EVERY == 0)
                        spool_writer_end_segment(putter->writer);
        }
        return NULL;
}

/* Read a segment, as into Kafka, and delete it. */
static void
drain_segment(const struct spool_directory *directory, uint64_t number)
{
        char name[SPOOL_NAME_SIZE];
        struct error error;
        struct segment_reader *reader =
            segment_reader_open(spool_directory_fd(directory), spool_directory_name(number, name), &error);
        struct segment_record record;

        ck_assert_ptr_nonnull(reader);
        while (segment_reader_next(reader, &record) > 0) {
                int i = run_identify(&record);

                ck_assert_int_ge(i, 0);
                disk_note(DISK_DRAINED, (unsigned)i);
        }
        segment_reader_close(reader);
        if (number % 4 == 0)
                ck_assert_int_eq(spool_directory_put_aside(directory, number), 0);
        else
                ck_assert_int_eq(spool_directory_remove(directory, number), 0);
}

static void *
drain_all(void *arg)
{
        struct drainer *drainer = arg;

        while (!atomic_load(&drainer->is_stopping)) {
                uint64_t limit = spool_writer_limit(drainer->writer);
                struct spool_listing listing;
                struct error error;

                ck_assert_int_eq(spool_directory_list(drainer->directory, 0, &listing, &error), 0);
                for (size_t i = 0; i < listing.n_segments && listing.segments[i].number < limit; i++)
                        drain_segment(drainer->directory, listing.segments[i].number);
                spool_listing_free(&listing);
                (void)sched_yield();
        }
        return NULL;
}

static void
run_threads(struct spool_writer *writer)
{
        struct putter putters[RUN_THREADS];

        for (unsigned t = 0; t < RUN_THREADS; t++) {
                struct putter *putter = &putters[t];

                *putter = (struct putter){.first = t * RUN_EACH, .writer = writer, .seed = t + 1};
                ck_assert_int_eq(pipe2(putter->wake, O_NONBLOCK | O_CLOEXEC), 0);
                spool_inbox_init(&putter->inbox, putter->wake[1]);
        }
        for (unsigned t = 0; t < RUN_THREADS; t++)
                ck_assert_int_eq(pthread_create(&putters[t].thread, NULL, put_all, &putters[t]), 0);
        for (unsigned t = 0; t < RUN_THREADS; t++) {
                ck_assert_int_eq(pthread_join(putters[t].thread, NULL), 0);
                (void)close(putters[t].wake[0]);
                (void)close(putters[t].wake[1]);
        }
}

void
run_record(const char *path, int drains)
{
        struct error error;
        struct spool_directory *directory = spool_directory_open(path, 1, &error);
        struct drainer drainer = {.directory = directory};
        struct spool_stats stats;
        struct spool_writer *writer;

        ck_assert_ptr_nonnull(directory);
        memset(run_deliveries, 0, sizeof(run_deliveries));
        spool_stats_init(&stats, UINT64_C(1) << 40);
        disk_record(path);
        writer = spool_writer_new(directory, &stats, 1, &error);
        ck_assert_ptr_nonnull(writer);
        drainer.writer = writer;
        if (drains)
                ck_assert_int_eq(pthread_create(&drainer.thread, NULL, drain_all, &drainer), 0);
        run_threads(writer);
        atomic_store(&drainer.is_stopping, 1);
        if (drains)
                ck_assert_int_eq(pthread_join(drainer.thread, NULL), 0);
        spool_writer_free(writer);
        spool_directory_close(directory);
        disk_stop();
}

unsigned
run_count_answered(void)
{
        unsigned n = 0;

        for (unsigned i = 0; i < RUN_DELIVERIES; i++)
                n += run_deliveries[i].is_answered != 0;
        return n;
}

int
run_identify(const struct segment_record *record)
{
        const struct segment_record *put;
        struct record_header field;
        char id[16];
        size_t at = 0;
        unsigned i;

        if (segment_next_field(record->fields, &at, &field) != 1 || at != record->fields.len)
                return -1;
        (void)snprintf(id, sizeof(id), "%.*s", (int)field.value.len, field.value.data);
        i = (unsigned)strtoul(id, NULL, 10);
        if (i >= RUN_DELIVERIES)
                return -1;
        put = &run_deliveries[i].item.item.record;
        if (put->body.len != record->body.len || put->received_ms != record->received_ms ||
            put->fields.len != record->fields.len ||
            memcmp(put->fields.data, record->fields.data, record->fields.len) != 0)
                return -1;
        return memcmp(put->body.data, record->body.data, record->body.len) == 0 ? (int)i : -1;
}
