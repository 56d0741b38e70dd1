#include "spool/spool_writer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "base/process.h"

/* What is written before a sync. More would make the first of it wait. */
#define GROUP_BYTES (UINT64_C(4) << 20)
#define GROUP_RECORDS 4096

/* After a failure, refuse deliveries for this long before the next attempt. */
#define PAUSE_MS 1000

/* After a failure, try by itself after this time, when somebody asks whether a delivery would be stored. */
#define TRY_MS 2000

/* Refuse deliveries while the disk has not answered for this long, instead of letting each wait for it. */
#define STUCK_MS 10000

#define STUCK "the disk of the spool does not answer"
#define NOT_STORED "the spool has failed"
#define FULL "the spool is full"
#define DISK_FULL "the disk of the spool is full"

struct spool_writer {
        struct spool_stats *stats;
        struct segment_writer *segment; /* the thread's own, but for its number */
        pthread_t thread;
        pthread_mutex_t mutex; /* protects the next four */
        struct segment_items waiting;
        int is_stopping;
        int ends_segment;
        int tries; /* whether anything can be stored */
        pthread_cond_t work;
        atomic_int_fast64_t failed_ms;  /* monotonic: the last failure; 0: something was stored since */
        atomic_int_fast64_t busy_since; /* monotonic ms; 0: idle */
        atomic_uint_fast64_t too_large; /* size of the last delivery that did not fit; 0: the last one did */
        struct log_flood full;
};

void
spool_inbox_init(struct spool_inbox *inbox, int wake_fd)
{
        pthread_mutex_init(&inbox->mutex, NULL);
        STAILQ_INIT(&inbox->items);
        inbox->wake_fd = wake_fd;
}

static struct spool_item *
item_of(struct segment_item *item)
{
        return (struct spool_item *)((char *)item - offsetof(struct spool_item, item));
}

struct spool_item *
spool_inbox_take(struct spool_inbox *inbox)
{
        struct segment_item *first;

        pthread_mutex_lock(&inbox->mutex);
        first = STAILQ_FIRST(&inbox->items);
        if (first != NULL)
                STAILQ_REMOVE_HEAD(&inbox->items, entry);
        pthread_mutex_unlock(&inbox->mutex);
        return first == NULL ? NULL : item_of(first);
}

/* Put an item into its inbox, and wake the reader of an inbox that was empty. */
static void
report(struct spool_writer *writer, struct spool_item *item, const char *failure, int may_be_there)
{
        struct spool_inbox *inbox = item->inbox;
        ssize_t written = 0;
        int was_empty;

        atomic_fetch_sub(&writer->stats->queued, segment_record_size(&item->item.record));
        item->failure = failure;
        item->may_be_there = may_be_there;
        pthread_mutex_lock(&inbox->mutex);
        was_empty = STAILQ_EMPTY(&inbox->items);
        STAILQ_INSERT_TAIL(&inbox->items, &item->item, entry);
        if (was_empty)
                written = write(inbox->wake_fd, "i", 1);
        pthread_mutex_unlock(&inbox->mutex);
        (void)written; /* a full pipe wakes as well */
}

/*
 * Take deliveries that wait, after waiting for one, or for something else to do. Return 0 when there are no
 * more and the writer stops.
 */
static int
take_group(struct spool_writer *writer, struct segment_group *group, int *ends_segment, int *tries)
{
        struct segment_item *item;
        int is_stopping;

        STAILQ_INIT(&group->items);
        group->n = group->bytes = 0;
        pthread_mutex_lock(&writer->mutex);
        while (STAILQ_EMPTY(&writer->waiting) && !writer->is_stopping && !writer->ends_segment &&
               !writer->tries)
                pthread_cond_wait(&writer->work, &writer->mutex);
        while ((item = STAILQ_FIRST(&writer->waiting)) != NULL && group->n < GROUP_RECORDS) {
                uint64_t size = segment_record_size(&item->record);

                if (group->n > 0 && group->bytes + size > GROUP_BYTES)
                        break;
                STAILQ_REMOVE_HEAD(&writer->waiting, entry);
                STAILQ_INSERT_TAIL(&group->items, item, entry);
                group->n++;
                group->bytes += size;
        }
        *ends_segment = writer->ends_segment;
        writer->ends_segment = 0;
        *tries = writer->tries;
        writer->tries = 0;
        is_stopping = writer->is_stopping;
        pthread_mutex_unlock(&writer->mutex);
        return group->n > 0 || !is_stopping;
}

/*
 * There is no room for n deliveries, the first of which has this size. One that would not fit into an empty
 * spool says nothing about the others.
 */
static void
note_full(struct spool_writer *writer, uint64_t n, uint64_t size)
{
        struct spool_stats *stats = writer->stats;

        spool_stats_note_error(stats, SPOOL_ERROR_FULL, n);
        if (size <= stats->max_bytes)
                atomic_store(&writer->too_large, size);
        log_flood(&writer->full, LOG_LEVEL_ERROR,
                  "the spool is full; deliveries are answered 503 spool_max=%" PRIu64 " bytes=%" PRIuFAST64
                  " size=%" PRIu64,
                  stats->max_bytes, atomic_load(&stats->bytes), size);
}

/* Write and sync a group, and note whether the spool fails. Return 0 or -1. */
static int
write_group(struct spool_writer *writer, const struct segment_group *group)
{
        int result = segment_writer_store(writer->segment, group);

        if (result == 0)
                spool_stats_note_stored(writer->stats);
        atomic_store(&writer->failed_ms, result == 0 ? 0 : clock_monotonic_ms());
        return result;
}

/* Whether the last attempt to store anything has failed, and was less than this time ago. */
static int
has_failed_within(const struct spool_writer *writer, int64_t ms)
{
        int64_t failed_ms = atomic_load(&writer->failed_ms);

        return failed_ms != 0 && clock_monotonic_ms() - failed_ms < ms;
}

/* Return why deliveries cannot be stored, after a failure. */
static const char *
last_failure(const struct spool_writer *writer)
{
        return atomic_load(&writer->stats->last_error) == SPOOL_ERROR_DISK ? DISK_FULL : NOT_STORED;
}

/* Return NULL when the group is on the disk, or why not; *may_be_there is set when some of it may be. */
static const char *
store(struct spool_writer *writer, const struct segment_group *group, int *may_be_there)
{
        struct spool_stats *stats = writer->stats;
        const struct segment_item *first = STAILQ_FIRST(&group->items);
        int64_t begun_ns = clock_monotonic_ns();

        if (atomic_load(&stats->bytes) + group->bytes > stats->max_bytes) {
                note_full(writer, group->n, segment_record_size(&first->record));
                return FULL;
        }
        if (has_failed_within(writer, PAUSE_MS))
                return last_failure(writer);
        *may_be_there = 1;
        if (write_group(writer, group) != 0)
                return last_failure(writer);
        atomic_store(&writer->too_large, 0);
        histogram_add(&stats->sync, (uint64_t)(clock_monotonic_ns() - begun_ns), 1);
        atomic_fetch_add(&stats->written, group->n);
        if (atomic_fetch_add(&stats->records, group->n) == 0 && atomic_load(&stats->uncounted) == 0)
                atomic_store(&stats->oldest_ms,
                             first->record.received_ms); /* all earlier ones are in Kafka */
        else
                spool_stats_note_oldest(stats, first->record.received_ms);
        return NULL;
}

static void *
run(void *arg)
{
        struct spool_writer *writer = arg;
        struct segment_group group;
        int ends_segment, tries;

        (void)pthread_setname_np(pthread_self(), "spool-writer");
        while (take_group(writer, &group, &ends_segment, &tries)) {
                struct segment_item *item;
                const char *failure;
                int may_be_there = 0;

                atomic_store(&writer->busy_since, clock_monotonic_ms());
                failure = group.n == 0 ? NULL : store(writer, &group, &may_be_there);
                if (group.n == 0 && tries && !has_failed_within(writer, TRY_MS))
                        (void)write_group(writer, &group);
                while ((item = STAILQ_FIRST(&group.items)) != NULL) {
                        STAILQ_REMOVE_HEAD(&group.items, entry);
                        report(writer, item_of(item), failure, may_be_there);
                }
                if (ends_segment)
                        segment_writer_end(writer->segment);
                atomic_store(&writer->busy_since, 0);
        }
        segment_writer_end(writer->segment);
        return NULL;
}

struct spool_writer *
spool_writer_new(const struct spool_directory *directory, struct spool_stats *stats, uint64_t first,
                 struct error *error)
{
        struct spool_writer *writer = mem_alloc(sizeof(*writer));

        writer->stats = stats;
        writer->segment = segment_writer_new(directory, stats, first);
        STAILQ_INIT(&writer->waiting);
        pthread_mutex_init(&writer->mutex, NULL);
        pthread_cond_init(&writer->work, NULL);
        if (pthread_create(&writer->thread, NULL, run, writer) == 0)
                return writer;
        (void)error_set(error, "cannot start the spool's thread");
        segment_writer_free(writer->segment);
        free(writer);
        return NULL;
}

void
spool_writer_free(struct spool_writer *writer)
{
        if (writer == NULL)
                return;
        pthread_mutex_lock(&writer->mutex);
        writer->is_stopping = 1;
        pthread_cond_signal(&writer->work);
        pthread_mutex_unlock(&writer->mutex);
        process_join(writer->thread, "spool");
        segment_writer_free(writer->segment);
        log_flood_end(&writer->full);
        free(writer);
}

/* Have the writer find out whether the spool still fails, unless it has just tried. */
static void
try_again(struct spool_writer *writer)
{
        if (has_failed_within(writer, TRY_MS))
                return;
        pthread_mutex_lock(&writer->mutex);
        writer->tries = 1;
        pthread_cond_signal(&writer->work);
        pthread_mutex_unlock(&writer->mutex);
}

const char *
spool_writer_refuses(struct spool_writer *writer, uint64_t size)
{
        struct spool_stats *stats = writer->stats;
        uint64_t wanted = size > 0 ? size : atomic_load(&writer->too_large);

        if (atomic_load(&stats->bytes) + atomic_load(&stats->queued) + wanted > stats->max_bytes) {
                if (size > 0)
                        note_full(writer, 1, size);
                return FULL;
        }
        if (spool_writer_busy_ms(writer) > STUCK_MS)
                return STUCK;
        if (size == 0 && atomic_load(&writer->failed_ms) != 0) {
                try_again(writer);
                return last_failure(writer);
        }
        return has_failed_within(writer, PAUSE_MS) ? last_failure(writer) : NULL;
}

void
spool_writer_forget_size(struct spool_writer *writer)
{
        atomic_store(&writer->too_large, 0);
}

void
spool_writer_put(struct spool_writer *writer, struct spool_item *item)
{
        atomic_fetch_add(&writer->stats->queued, segment_record_size(&item->item.record));
        pthread_mutex_lock(&writer->mutex);
        STAILQ_INSERT_TAIL(&writer->waiting, &item->item, entry);
        pthread_cond_signal(&writer->work);
        pthread_mutex_unlock(&writer->mutex);
}

uint64_t
spool_writer_limit(const struct spool_writer *writer)
{
        return segment_writer_limit(writer->segment);
}

uint64_t
spool_writer_segment(const struct spool_writer *writer)
{
        return segment_writer_number(writer->segment);
}

int
spool_writer_has_sealed(const struct spool_writer *writer, uint64_t number)
{
        return segment_writer_has_sealed(writer->segment, number);
}

void
spool_writer_note_missing(struct spool_writer *writer, uint64_t limit)
{
        struct spool_stats *stats = writer->stats;
        uint64_t segments = atomic_load(&stats->segments), records = atomic_load(&stats->records);

        if (segments == 0 || spool_writer_segment(writer) != 0 || spool_writer_limit(writer) != limit)
                return;
        log_error("segments are missing from the spool: their deliveries are lost, unless they were moved "
                  "segments=%llu deliveries=%llu",
                  (unsigned long long)segments, (unsigned long long)records);
        atomic_fetch_add(&stats->lost_records, records);
        spool_stats_reduce(&stats->records, records);
        spool_stats_reduce(&stats->uncounted, atomic_load(&stats->uncounted));
        spool_stats_reduce(&stats->segments, segments);
}

void
spool_writer_end_segment(struct spool_writer *writer)
{
        pthread_mutex_lock(&writer->mutex);
        writer->ends_segment = 1;
        pthread_cond_signal(&writer->work);
        pthread_mutex_unlock(&writer->mutex);
}

int64_t
spool_writer_busy_ms(const struct spool_writer *writer)
{
        int64_t since = atomic_load(&writer->busy_since);

        return since == 0 ? 0 : clock_monotonic_ms() - since;
}
