#include "spool/segment.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"

#define HEADER_MAGIC "GPSPOOL1"
#define RECORD_MAGIC "GPRC"
#define BLOCK 4096 /* what a failing disk cannot read is left out in units of this size */
#define CHUNK (UINT64_C(1) << 20)
#define MAX_TIME_MS INT64_C(253402300799999) /* the end of the year 9999 */

struct segment_reader {
        int fd;
        uint64_t size;   /* of the file */
        uint64_t offset; /* of the next record */
        uint8_t *buffer;
        size_t capacity;
        uint64_t start; /* offset of the first byte in the buffer */
        size_t filled;
        int has_id; /* the header is intact: only records with its ID belong to the segment */
        uint8_t id[SEGMENT_ID_SIZE];
        /* Bytes of no record that no record has shown to be damage so far, and the offset of the first. */
        uint64_t doubtful_bytes;
        uint64_t doubtful_from;
        int has_failed; /* the disk could not read some bytes */
        struct segment_watch *watch;
        struct segment_summary summary;
};

static void
put32(uint8_t *at, uint32_t value)
{
        value = htole32(value);
        memcpy(at, &value, sizeof(value));
}

static void
put64(uint8_t *at, uint64_t value)
{
        value = htole64(value);
        memcpy(at, &value, sizeof(value));
}

static uint32_t
get32(const uint8_t *at)
{
        uint32_t value;

        memcpy(&value, at, sizeof(value));
        return le32toh(value);
}

static uint64_t
get64(const uint8_t *at)
{
        uint64_t value;

        memcpy(&value, at, sizeof(value));
        return le64toh(value);
}

/* The header: magic, its size, zeros, the segment's ID, zeros, CRC-32C of all that. */
void
segment_write_header(const uint8_t id[SEGMENT_ID_SIZE], uint8_t header[SEGMENT_HEADER_SIZE])
{
        memset(header, 0, SEGMENT_HEADER_SIZE);
        memcpy(header, HEADER_MAGIC, 8);
        put32(header + 8, SEGMENT_HEADER_SIZE);
        memcpy(header + 16, id, SEGMENT_ID_SIZE);
        put32(header + 28, crc32c_add(0, header, 28));
}

static void
put16(uint8_t *at, size_t value)
{
        at[0] = (uint8_t)(value & 0xff);
        at[1] = (uint8_t)(value >> 8);
}

/* A field: length of the name with its NUL, length of the value, name, value. */
int
segment_add_field(uint8_t *fields, size_t size, size_t *len, const char *name, struct span value)
{
        size_t name_size = strlen(name) + 1;

        if (name_size > UINT16_MAX || value.len > UINT16_MAX || size - *len < 4 + name_size + value.len)
                return -1;
        put16(fields + *len, name_size);
        put16(fields + *len + 2, value.len);
        memcpy(fields + *len + 4, name, name_size);
        if (value.len > 0)
                memcpy(fields + *len + 4 + name_size, value.data, value.len);
        *len += 4 + name_size + value.len;
        return 0;
}

int
segment_next_field(struct span fields, size_t *at, struct record_header *field)
{
        const uint8_t *next = (const uint8_t *)fields.data + *at;
        size_t left = fields.len - *at, name_size, value_len;

        if (left == 0)
                return 0;
        if (left < 4)
                return -1;
        name_size = next[0] | (size_t)next[1] << 8;
        value_len = next[2] | (size_t)next[3] << 8;
        if (name_size == 0 || left - 4 < name_size + value_len || next[4 + name_size - 1] != '\0')
                return -1;
        *field =
            (struct record_header){(const char *)next + 4, {(const char *)next + 4 + name_size, value_len}};
        *at += 4 + name_size + value_len;
        return 1;
}

uint64_t
segment_record_size(const struct segment_record *record)
{
        return (SEGMENT_HEAD_SIZE + record->fields.len + record->body.len + 7) & ~UINT64_C(7);
}

/* The CRC-32C of a head binds it to its place: a record that was copied elsewhere is not intact. */
static uint32_t
head_crc(const uint8_t *head, uint64_t offset)
{
        uint8_t place[8];

        put64(place, offset);
        return crc32c_add(crc32c_add(0, place, sizeof(place)), head, SEGMENT_HEAD_SIZE - 4);
}

/*
 * The head: magic, length of the fields, the segment's ID, length of the body, bytes synced, time of
 * reception, CRC-32C of fields and body, CRC-32C of the offset and the head.
 */
void
segment_write_head(const uint8_t id[SEGMENT_ID_SIZE], const struct segment_record *record,
                   uint8_t head[SEGMENT_HEAD_SIZE])
{
        uint32_t crc = crc32c_add(0, record->fields.data, record->fields.len);

        memcpy(head, RECORD_MAGIC, 4);
        put32(head + 4, (uint32_t)record->fields.len);
        memcpy(head + 8, id, SEGMENT_ID_SIZE);
        put64(head + 16, record->body.len);
        put64(head + 24, record->synced);
        put64(head + 32, (uint64_t)record->received_ms);
        put32(head + 40, crc32c_add(crc, record->body.data, record->body.len));
        put32(head + 44, head_crc(head, record->offset));
}

/*
 * Read up to len bytes of the file. What the disk fails to read counts as zeros, so that one bad sector costs
 * the records in it and no others: after a failure the rest is read block by block, each block once. Return
 * the number of bytes, which is smaller only at the end, or, with *failed set, if the thread stops.
 */
static size_t
read_at(struct segment_reader *reader, uint64_t offset, uint8_t *bytes, size_t len, int *failed)
{
        size_t done = 0;
        int by_block = 0;

        while (done < len) {
                uint64_t at = offset + done;
                size_t block = BLOCK - at % BLOCK;
                size_t wanted = by_block && block < len - done ? block : len - done;
                ssize_t n;

                if (reader->watch != NULL && atomic_load(&reader->watch->is_stopping)) {
                        *failed = 1;
                        break;
                }
                if (reader->watch != NULL)
                        heartbeat_wait(&reader->watch->heartbeat);
                n = pread(reader->fd, bytes + done, wanted, (off_t)at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n == 0)
                        break;
                if (n < 0 && wanted > block) {
                        by_block = 1;
                        continue;
                }
                if (n < 0) {
                        memset(bytes + done, 0, wanted);
                        reader->has_failed = 1;
                        n = (ssize_t)wanted;
                }
                done += (size_t)n;
        }
        return done;
}

/*
 * Return len bytes at an offset, valid until the next call; NULL if the file ends before, or, with *failed
 * set, if memory fails or the thread stops. Bytes that were read already are not read again.
 */
static const uint8_t *
bytes_at(struct segment_reader *reader, uint64_t offset, uint64_t len, int *failed)
{
        uint64_t wanted = len > CHUNK ? len : CHUNK, end = reader->start + reader->filled;
        size_t kept = offset >= reader->start && offset < end ? (size_t)(end - offset) : 0;

        if (offset + len > reader->size)
                return NULL;
        if (offset >= reader->start && offset + len <= reader->start + reader->filled)
                return reader->buffer + (offset - reader->start);
        if (wanted > reader->size - offset)
                wanted = reader->size - offset;
        if (reader->capacity < wanted) {
                uint8_t *larger = realloc(reader->buffer, wanted);

                if (larger == NULL) {
                        *failed = 1;
                        return NULL;
                }
                reader->buffer = larger;
                reader->capacity = wanted;
        }
        if (kept > 0)
                memmove(reader->buffer, reader->buffer + (offset - reader->start), kept);
        reader->start = offset;
        reader->filled = kept + read_at(reader, offset + kept, reader->buffer + kept, wanted - kept, failed);
        return reader->filled < len ? NULL : reader->buffer;
}

struct segment_reader *
segment_reader_open(int directory, const char *name, struct error *error)
{
        struct segment_reader *reader = calloc(1, sizeof(*reader));
        struct stat status;

        if (reader == NULL) {
                (void)error_set(error, "out of memory");
                return NULL;
        }
        reader->fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (reader->fd < 0 || fstat(reader->fd, &status) != 0 || !S_ISREG(status.st_mode)) {
                (void)error_set(error, "%s", reader->fd < 0 ? strerror(errno) : "it is not a regular file");
                segment_reader_close(reader);
                return NULL;
        }
        reader->size = reader->summary.size = (uint64_t)status.st_size;
        return reader;
}

void
segment_reader_watch(struct segment_reader *reader, struct segment_watch *watch)
{
        reader->watch = watch;
}

/* Return 0, or -1 if the bytes cannot be had. */
static int
read_header(struct segment_reader *reader)
{
        int failed = 0;
        const uint8_t *header = bytes_at(reader, 0, SEGMENT_HEADER_SIZE, &failed);

        if (failed)
                return -1;
        if (header != NULL && memcmp(header, HEADER_MAGIC, 8) == 0 &&
            get32(header + 28) == crc32c_add(0, header, 28)) {
                reader->has_id = 1;
                memcpy(reader->id, header + 16, SEGMENT_ID_SIZE);
        } else {
                reader->doubtful_bytes =
                    reader->size < SEGMENT_HEADER_SIZE ? reader->size : SEGMENT_HEADER_SIZE;
        }
        reader->offset = SEGMENT_HEADER_SIZE;
        return 0;
}

void
segment_reader_close(struct segment_reader *reader)
{
        if (reader == NULL)
                return;
        if (reader->fd >= 0)
                (void)close(reader->fd);
        free(reader->buffer);
        free(reader);
}

static int
is_head(const struct segment_reader *reader, const uint8_t *head)
{
        return memcmp(head, RECORD_MAGIC, 4) == 0 && get32(head + 44) == head_crc(head, reader->offset) &&
               (!reader->has_id || memcmp(head + 8, reader->id, SEGMENT_ID_SIZE) == 0) &&
               get32(head + 4) <= SEGMENT_FIELDS_MAX && get64(head + 16) <= SEGMENT_BODY_MAX &&
               get64(head + 32) <= MAX_TIME_MS;
}

/* Leave out bytes that are no record. */
static void
skip(struct segment_reader *reader, uint64_t len)
{
        if (len > reader->size - reader->offset)
                len = reader->size - reader->offset;
        if (reader->doubtful_bytes == 0)
                reader->doubtful_from = reader->offset;
        reader->doubtful_bytes += len;
        reader->offset += len;
}

static void
note_record(struct segment_reader *reader, const struct segment_record *record)
{
        struct segment_summary *summary = &reader->summary;

        if (reader->doubtful_bytes > 0 && record->synced > reader->doubtful_from) {
                summary->damaged_bytes += reader->doubtful_bytes;
                reader->doubtful_bytes = 0;
        }
        if (record->fields.len == 0)
                return;
        if (summary->n_records == 0 || record->received_ms < summary->oldest_ms)
                summary->oldest_ms = record->received_ms;
        if (summary->n_records == 0 || record->received_ms > summary->newest_ms)
                summary->newest_ms = record->received_ms;
        summary->n_records++;
}

/* Read the record at the offset. Return 1, 0 if there is none, or -1 if the bytes cannot be had. */
static int
read_record(struct segment_reader *reader, struct segment_record *record)
{
        int failed = 0;
        const uint8_t *head = bytes_at(reader, reader->offset, SEGMENT_HEAD_SIZE, &failed);
        uint64_t fields_len, body_len;
        uint32_t crc;

        if (head == NULL || !is_head(reader, head)) {
                if (!failed)
                        skip(reader, 8);
                return failed ? -1 : 0;
        }
        fields_len = get32(head + 4);
        body_len = get64(head + 16);
        crc = get32(head + 40);
        *record = (struct segment_record){.received_ms = (int64_t)get64(head + 32),
                                          .synced = get64(head + 24),
                                          .offset = reader->offset,
                                          .fields = {NULL, fields_len},
                                          .body = {NULL, body_len}};
        head = bytes_at(reader, reader->offset, SEGMENT_HEAD_SIZE + fields_len + body_len, &failed);
        if (failed)
                return -1;
        if (head == NULL || crc != crc32c_add(0, head + SEGMENT_HEAD_SIZE, fields_len + body_len)) {
                skip(reader, segment_record_size(record));
                return 0;
        }
        record->fields.data = (const char *)head + SEGMENT_HEAD_SIZE;
        record->body.data = record->fields.data + fields_len;
        reader->offset += segment_record_size(record);
        if (reader->offset > reader->size)
                reader->offset = reader->size;
        return 1;
}

int
segment_reader_next(struct segment_reader *reader, struct segment_record *record)
{
        if (reader->offset == 0 && read_header(reader) != 0)
                return -1;
        while (reader->offset < reader->size) {
                int found = read_record(reader, record);

                if (found < 0)
                        return -1;
                if (found == 0)
                        continue;
                note_record(reader, record);
                if (record->fields.len > 0)
                        return 1;
        }
        return 0;
}

void
segment_reader_summary(const struct segment_reader *reader, struct segment_summary *summary)
{
        *summary = reader->summary;
        summary->torn_bytes = reader->doubtful_bytes;
        if (reader->has_failed) {
                summary->unreadable_bytes = summary->damaged_bytes + summary->torn_bytes;
                summary->damaged_bytes = summary->torn_bytes = 0;
        }
}
