#include "spool/segment_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/error.h"
#include "base/log.h"
#include "base/log_flood.h"
#include "base/mem.h"

#define ROOM_MIN (UINT64_C(64) << 10) /* beside the records */

struct segment_writer {
        const struct spool_directory *directory;
        struct spool_stats *stats;
        atomic_uint_fast64_t number; /* of the segment that is being written; 0: none */
        atomic_uint_fast64_t limit;  /* all segments with smaller numbers have ended */
        uint64_t lacking;            /* bytes for which the disk had no room; 0: it had for the last ones */
        uint64_t first;              /* the number of the first one */
        uint64_t next;               /* the number of the next one */
        int fd;                      /* -1: none */
        uint64_t size;
        uint64_t synced; /* what was answered ends here */
        uint64_t n_answered;
        uint8_t id[SEGMENT_ID_SIZE];
        int is_named;          /* its name is synced */
        pthread_mutex_t mutex; /* protects the next two */
        uint64_t *abandoned;   /* segments that were ended after a failure, without a seal */
        size_t n_abandoned;
        struct log_flood failed, unsealed;
};

/* No segment is being written. */
static void
note_end(struct segment_writer *writer)
{
        atomic_store(&writer->limit, writer->next);
        atomic_store(&writer->number, 0);
}

static void
log_failure(struct segment_writer *writer, const char *action, const char *reason)
{
        char name[SPOOL_NAME_SIZE], quoted[LOG_QUOTED_SIZE];

        log_flood(&writer->failed, LOG_LEVEL_ERROR,
                  "the spool failed; deliveries are answered 503 action=%s segment=%s reason=%s", action,
                  spool_directory_name(atomic_load(&writer->number), name), log_quote(reason, quoted));
}

/*
 * Return how many records of the segment can be read back below what was synced. Count those above that, too:
 * they are drained although they were not answered.
 */
static uint64_t
count_readable(const struct segment_writer *writer, uint64_t number)
{
        struct segment_reader *reader;
        struct segment_record record;
        char name[SPOOL_NAME_SIZE];
        struct error error;
        uint64_t n = 0, n_above = 0;

        reader = segment_reader_open(spool_directory_fd(writer->directory),
                                     spool_directory_name(number, name), &error);
        while (reader != NULL && segment_reader_next(reader, &record) > 0) {
                n += record.offset < writer->synced;
                n_above += record.offset >= writer->synced;
        }
        segment_reader_close(reader);
        atomic_fetch_add(&writer->stats->records, n_above);
        return n;
}

static void
note_abandoned(struct segment_writer *writer, uint64_t number)
{
        pthread_mutex_lock(&writer->mutex);
        writer->abandoned =
            mem_resize(writer->abandoned, writer->n_abandoned + 1, sizeof(*writer->abandoned));
        writer->abandoned[writer->n_abandoned++] = number;
        pthread_mutex_unlock(&writer->mutex);
}

/* Whether the segment that is being written has no name any more. */
static int
is_deleted(const struct segment_writer *writer, struct stat *status)
{
        return fstat(writer->fd, status) != 0 || status->st_nlink == 0;
}

/*
 * Write no more to the segment after a failure. What was answered must be there: read it back from the disk.
 * A segment without any such is deleted, so that a full disk does not fill with empty ones.
 */
static void
abandon_segment(struct segment_writer *writer)
{
        uint64_t number = atomic_load(&writer->number), readable, left;
        char name[SPOOL_NAME_SIZE];
        struct stat status;
        int is_there = !is_deleted(writer, &status), is_left = is_there;

        left = is_there ? (uint64_t)status.st_size : 0;
        atomic_fetch_add(&writer->stats->bytes, left);
        spool_stats_reduce(&writer->stats->bytes, writer->size);
        (void)posix_fadvise(writer->fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(writer->fd);
        writer->fd = -1;
        if (writer->n_answered == 0) {
                if (is_there && spool_directory_remove(writer->directory, number) == 0) {
                        spool_stats_reduce(&writer->stats->segments, 1);
                        spool_stats_reduce(&writer->stats->bytes, left);
                        is_left = 0;
                }
        } else {
                readable = count_readable(writer, number);
                if (readable < writer->n_answered) {
                        atomic_fetch_add(&writer->stats->lost_records, writer->n_answered - readable);
                        log_error("deliveries that were answered 200 cannot be read back from the spool "
                                  "segment=%s answered=%llu readable=%llu",
                                  spool_directory_name(number, name), (unsigned long long)writer->n_answered,
                                  (unsigned long long)readable);
                }
        }
        if (!is_there) {
                spool_stats_reduce(&writer->stats->segments, 1);
                spool_stats_reduce(&writer->stats->records, writer->n_answered);
        }
        if (is_left)
                note_abandoned(writer, number);
        note_end(writer);
}

static void
fail(struct segment_writer *writer, enum spool_error error, const char *action, const char *reason)
{
        int is_full = error == SPOOL_ERROR_WRITE && (errno == ENOSPC || errno == EDQUOT);
        struct error full;

        if (is_full && writer->lacking < writer->size - writer->synced + ROOM_MIN)
                writer->lacking = writer->size - writer->synced + ROOM_MIN;
        if (is_full)
                (void)error_set(&full, "the disk is full: %s", reason);
        log_failure(writer, action, is_full ? full.text : reason);
        spool_stats_note_error(writer->stats, is_full ? SPOOL_ERROR_DISK : error, 1);
        if (writer->fd >= 0)
                abandon_segment(writer);
}

static void
begin_segment(struct segment_writer *writer)
{
        uint8_t header[SEGMENT_HEADER_SIZE];

        if (RAND_bytes(writer->id, sizeof(writer->id)) != 1) {
                fail(writer, SPOOL_ERROR_WRITE, "create", "no random bytes");
                return;
        }
        atomic_store(&writer->number, writer->next);
        writer->fd = spool_directory_create(writer->directory, writer->next);
        writer->next++; /* a name that exists is not tried again */
        if (writer->fd < 0) {
                fail(writer, SPOOL_ERROR_WRITE, "create", strerror(errno));
                note_end(writer);
                return;
        }
        crash_point("spool-created");
        atomic_fetch_add(&writer->stats->segments, 1);
        writer->size = writer->synced = writer->n_answered = 0;
        writer->is_named = 0;
        segment_write_header(writer->id, header);
        errno = ENOSPC;
        if (write(writer->fd, header, sizeof(header)) != (ssize_t)sizeof(header)) {
                fail(writer, SPOOL_ERROR_WRITE, "write", strerror(errno));
                return;
        }
        writer->size = sizeof(header);
        atomic_fetch_add(&writer->stats->bytes, sizeof(header));
}

/* Write all of the vectors. Return 0, or -1 with errno set. */
static int
write_all(int fd, struct iovec *vectors, size_t n)
{
        while (n > 0) {
                ssize_t written = writev(fd, vectors, n < IOV_MAX ? (int)n : IOV_MAX);
                size_t left;

                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0)
                        return -1;
                for (left = (size_t)written; n > 0 && left >= vectors->iov_len; n--)
                        left -= vectors++->iov_len;
                if (n > 0) {
                        vectors->iov_base = (char *)vectors->iov_base + left;
                        vectors->iov_len -= left;
                }
        }
        return 0;
}

static struct iovec
vector_of(const void *bytes, size_t len)
{
        return (struct iovec){(void *)(uintptr_t)bytes, len};
}

/* Write the records of a group after each other. Return 0, or -1 with errno set. */
static int
write_records(struct segment_writer *writer, const struct segment_group *group)
{
        static const char zeros[8];
        uint8_t(*heads)[SEGMENT_HEAD_SIZE] = malloc(group->n * SEGMENT_HEAD_SIZE);
        struct iovec *vectors = malloc(group->n * 4 * sizeof(*vectors));
        struct segment_item *item;
        size_t n = 0, i = 0;
        int result = -1;

        errno = ENOMEM;
        if (heads != NULL && vectors != NULL) {
                STAILQ_FOREACH(item, &group->items, entry)
                {
                        struct segment_record *record = &item->record;
                        uint64_t size = segment_record_size(record);

                        record->synced = writer->synced;
                        record->offset = writer->size;
                        segment_write_head(writer->id, record, heads[i]);
                        vectors[n++] = vector_of(heads[i++], SEGMENT_HEAD_SIZE);
                        vectors[n++] = vector_of(record->fields.data, record->fields.len);
                        vectors[n++] = vector_of(record->body.data, record->body.len);
                        vectors[n++] = vector_of(zeros, size - SEGMENT_HEAD_SIZE - record->fields.len -
                                                            record->body.len);
                        writer->size += size;
                }
                atomic_fetch_add(&writer->stats->bytes, group->bytes);
                result = write_all(writer->fd, vectors, n);
        }
        free(heads);
        free(vectors);
        return result;
}

/*
 * Reserve the room that was lacking, behind the end of the file. Return 0, also if the file system cannot, or
 * -1 with errno set.
 */
static int
reserve(const struct segment_writer *writer)
{
        if (writer->lacking == 0 ||
            fallocate(writer->fd, FALLOC_FL_KEEP_SIZE, (off_t)writer->size, (off_t)writer->lacking) == 0)
                return 0;
        return errno == ENOSPC || errno == EDQUOT ? -1 : 0;
}

/* Return NULL if the segment can be found again, by its name and in the directory that is configured. */
static const char *
find_displacement(const struct segment_writer *writer)
{
        struct stat status;

        if (!spool_directory_is_in_place(writer->directory))
                return "the directory was renamed, deleted or replaced; restore it";
        if (is_deleted(writer, &status))
                return "the segment was deleted";
        return NULL;
}

int
segment_writer_store(struct segment_writer *writer, const struct segment_group *group)
{
        const char *displacement;

        if (writer->fd >= 0 && writer->size + group->bytes > SEGMENT_SIZE)
                segment_writer_end(writer);
        if (writer->fd < 0)
                begin_segment(writer);
        if (writer->fd < 0)
                return -1;
        if ((group->n == 0 ? reserve(writer) : write_records(writer, group)) != 0) {
                fail(writer, SPOOL_ERROR_WRITE, "write", strerror(errno));
                return -1;
        }
        crash_point("spool-written");
        if (fdatasync(writer->fd) != 0 ||
            (!writer->is_named && spool_directory_sync(writer->directory) != 0)) {
                fail(writer, SPOOL_ERROR_SYNC, "sync", strerror(errno));
                return -1;
        }
        crash_point("spool-synced");
        writer->is_named = 1;
        displacement = find_displacement(writer);
        if (displacement != NULL) {
                fail(writer, SPOOL_ERROR_PLACE, "find", displacement);
                return -1;
        }
        writer->synced = writer->size;
        writer->n_answered += group->n;
        writer->lacking = 0;
        return 0;
}

/* End the segment. A seal says that all of it was synced; without one, damage to its end goes unnoticed. */
void
segment_writer_end(struct segment_writer *writer)
{
        struct segment_record seal = {.synced = writer->synced, .offset = writer->size};
        uint8_t head[SEGMENT_HEAD_SIZE];
        char name[SPOOL_NAME_SIZE], quoted[LOG_QUOTED_SIZE];
        struct stat status;

        if (writer->fd < 0)
                return;
        segment_write_head(writer->id, &seal, head);
        errno = ENOSPC;
        if (write(writer->fd, head, sizeof(head)) != (ssize_t)sizeof(head) || fdatasync(writer->fd) != 0) {
                log_flood(&writer->unsealed, LOG_LEVEL_WARNING,
                          "a segment of the spool could not be sealed; it is drained all the same "
                          "segment=%s reason=%s",
                          spool_directory_name(atomic_load(&writer->number), name),
                          log_quote(strerror(errno), quoted));
                abandon_segment(writer);
                return;
        }
        atomic_fetch_add(&writer->stats->bytes, sizeof(head));
        writer->size += sizeof(head);
        if (is_deleted(writer, &status)) {
                abandon_segment(writer);
                return;
        }
        (void)close(writer->fd);
        writer->fd = -1;
        note_end(writer);
        crash_point("spool-ended");
}

struct segment_writer *
segment_writer_new(const struct spool_directory *directory, struct spool_stats *stats, uint64_t first)
{
        struct segment_writer *writer = mem_alloc(sizeof(*writer));

        writer->directory = directory;
        writer->stats = stats;
        writer->first = writer->next = first;
        atomic_store(&writer->limit, first);
        writer->fd = -1;
        pthread_mutex_init(&writer->mutex, NULL);
        return writer;
}

void
segment_writer_free(struct segment_writer *writer)
{
        if (writer == NULL)
                return;
        segment_writer_end(writer);
        log_flood_end(&writer->failed);
        log_flood_end(&writer->unsealed);
        free(writer->abandoned);
        free(writer);
}

uint64_t
segment_writer_limit(const struct segment_writer *writer)
{
        return atomic_load(&writer->limit);
}

int
segment_writer_has_sealed(struct segment_writer *writer, uint64_t number)
{
        int is_sealed = number >= writer->first && number < atomic_load(&writer->limit);

        pthread_mutex_lock(&writer->mutex);
        for (size_t i = 0; is_sealed && i < writer->n_abandoned; i++)
                is_sealed = writer->abandoned[i] != number;
        pthread_mutex_unlock(&writer->mutex);
        return is_sealed;
}

uint64_t
segment_writer_number(const struct segment_writer *writer)
{
        return atomic_load(&writer->number);
}
