#include "dedup/run_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/crash.h"
#include "base/crc32c.h"
#include "base/directory.h"

#define BITS_AN_ENTRY 12
#define BUFFER_BLOCKS 128

struct run_writer {
        int directory;
        int fd;
        struct run_header header;
        uint64_t n_blocks; /* complete ones */
        uint32_t *index;
        uint8_t *filter;
        struct dedup_entry last;  /* the entry before */
        struct dedup_entry group; /* all bodies of its identity */
        uint64_t n_of_group;
        size_t n_buffered; /* blocks, the last one incomplete */
        struct run_block blocks[BUFFER_BLOCKS];
};

char *
run_make_name(const struct run_range *range, char name[RUN_NAME_SIZE])
{
        (void)snprintf(name, RUN_NAME_SIZE, "%" PRId32 "-%" PRId64 "-%" PRId64 RUN_SUFFIX, range->partition,
                       range->from, range->to);
        return name;
}

static void
writer_free(struct run_writer *writer)
{
        if (writer == NULL)
                return;
        if (writer->fd >= 0) {
                (void)close(writer->fd);
                (void)unlinkat(writer->directory, RUN_TEMPORARY, 0);
        }
        free(writer->index);
        free(writer->filter);
        free(writer);
}

/*
 * Return a writer for at most n pairs of identity and body, or NULL with the reason. Each identity with
 * several bodies takes one more entry.
 */
static struct run_writer *
writer_new(int directory, const struct run_range *range, uint64_t n, struct error *error)
{
        struct run_writer *writer = calloc(1, sizeof(*writer));
        uint64_t id;

        if (writer == NULL) {
                (void)error_set(error, "out of memory");
                return NULL;
        }
        writer->fd = -1;
        writer->directory = directory;
        memcpy(writer->header.magic, RUN_MAGIC, sizeof(writer->header.magic));
        writer->header.version = RUN_VERSION;
        writer->header.n_lines = n * BITS_AN_ENTRY / 8 / RUN_LINE_SIZE + 1;
        writer->header.least_ms = INT64_MAX;
        writer->header.most_ms = INT64_MIN;
        writer->header.range = *range;
        writer->index = malloc(((n + n / 2) / RUN_BLOCK_ENTRIES + 1) * sizeof(uint32_t));
        writer->filter = calloc(writer->header.n_lines, RUN_LINE_SIZE);
        if (writer->index == NULL || writer->filter == NULL ||
            RAND_bytes((unsigned char *)&id, sizeof(id)) != 1) {
                (void)error_set(error, "out of memory");
                writer_free(writer);
                return NULL;
        }
        writer->header.id = id;
        (void)unlinkat(directory, RUN_TEMPORARY, 0);
        writer->fd = directory_create(directory, RUN_TEMPORARY, O_RDWR | O_EXCL);
        if (writer->fd < 0) {
                (void)error_set(error, "cannot create a file: %s", strerror(errno));
                writer_free(writer);
                return NULL;
        }
        crash_point("run-created");
        return writer;
}

/* Write all bytes. Returns 0, or -1 with errno set. */
static int
write_at(int fd, const void *bytes, size_t len, uint64_t offset)
{
        const uint8_t *at = bytes;

        while (len > 0) {
                ssize_t n = pwrite(fd, at, len, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return -1;
                at += n;
                offset += (uint64_t)n;
                len -= (size_t)n;
        }
        return 0;
}

static int
flush_blocks(struct run_writer *writer)
{
        uint64_t first = writer->n_blocks;

        for (size_t i = 0; i < writer->n_buffered; i++) {
                struct run_block *block = &writer->blocks[i];

                writer->index[first + i] = run_index_key(block->entries[0].identity);
                block->crc = run_block_crc(writer->header.id, first + i, block);
        }
        if (write_at(writer->fd, writer->blocks, writer->n_buffered * RUN_BLOCK_SIZE,
                     RUN_BLOCK_SIZE + first * RUN_BLOCK_SIZE) != 0)
                return -1;
        crash_point("run-written");
        writer->n_blocks += writer->n_buffered;
        writer->n_buffered = 0;
        return 0;
}

static int
put(struct run_writer *writer, const struct dedup_entry *entry)
{
        size_t place = writer->header.n_entries % RUN_BLOCK_ENTRIES;
        struct run_disk_entry *packed;

        if (place == 0) {
                if (writer->n_buffered == BUFFER_BLOCKS && flush_blocks(writer) != 0)
                        return -1;
                memset(&writer->blocks[writer->n_buffered++], 0, sizeof(struct run_block));
        }
        packed = &writer->blocks[writer->n_buffered - 1].entries[place];
        memcpy(packed->identity, entry->identity, sizeof(packed->identity));
        packed->body = entry->body;
        packed->last_ms = entry->last_ms;
        packed->first_offset = (uint32_t)(entry->first_offset - writer->header.range.from);
        writer->header.n_entries++;
        return 0;
}

/* End the entries of an identity. */
static int
end_group(struct run_writer *writer)
{
        struct dedup_entry any = writer->group;

        any.body = DEDUP_ANY_BODY;
        return writer->n_of_group > 1 ? put(writer, &any) : 0;
}

/* Add the next entry. Returns 0, or -1 with errno set. */
static int
add(struct run_writer *writer, const struct dedup_entry *entry)
{
        if (writer->n_of_group > 0 &&
            memcmp(entry->identity, writer->group.identity, DEDUP_IDENTITY_SIZE) == 0) {
                writer->n_of_group++;
                dedup_entry_add(&writer->group, entry);
        } else {
                if (end_group(writer) != 0)
                        return -1;
                writer->n_of_group = 1;
                writer->group = *entry;
                run_filter_add(writer->filter, writer->header.n_lines, entry->identity);
        }
        if (entry->last_ms < writer->header.least_ms)
                writer->header.least_ms = entry->last_ms;
        if (entry->last_ms > writer->header.most_ms)
                writer->header.most_ms = entry->last_ms;
        return put(writer, entry);
}

/* Write the rest of the file, and make it last. Returns 0, or -1 with errno set. */
static int
complete(struct run_writer *writer, const char *name)
{
        struct run_header *header = &writer->header;
        uint8_t first[RUN_BLOCK_SIZE] = {0};
        size_t index_len, filter_len = header->n_lines * RUN_LINE_SIZE;
        uint64_t at;

        if (end_group(writer) != 0 || flush_blocks(writer) != 0)
                return -1;
        index_len = writer->n_blocks * sizeof(uint32_t);
        at = RUN_BLOCK_SIZE + writer->n_blocks * RUN_BLOCK_SIZE;
        header->index_crc = crc32c_add(0, writer->index, index_len);
        header->filter_crc = crc32c_add(0, writer->filter, filter_len);
        header->crc = run_header_crc(header);
        memcpy(first, header, sizeof(*header));
        if (write_at(writer->fd, writer->index, index_len, at) != 0 ||
            write_at(writer->fd, writer->filter, filter_len, at + index_len) != 0 ||
            write_at(writer->fd, first, sizeof(first), 0) != 0 || fsync(writer->fd) != 0)
                return -1;
        crash_point("run-synced");
        if (renameat(writer->directory, RUN_TEMPORARY, writer->directory, name) != 0)
                return -1;
        crash_point("run-renamed");
        return fsync(writer->directory);
}

/* Complete the file and open it. Frees the writer. Returns NULL with the reason. */
static struct run *
finish(struct run_writer *writer, struct error *error)
{
        const struct run_range range = writer->header.range;
        char name[RUN_NAME_SIZE];
        struct run *run = NULL;

        if (complete(writer, run_make_name(&range, name)) != 0) {
                (void)error_set(error, "cannot write %s: %s", name, strerror(errno));
        } else {
                run = run_open_fd(writer->fd, name, range.owner, error);
                writer->fd = -1;
        }
        writer_free(writer);
        return run;
}

struct run *
run_write(int directory, const struct run_range *range, const struct dedup_entry *entries, size_t n,
          struct error *error)
{
        struct run_writer *writer = writer_new(directory, range, n, error);

        if (writer == NULL)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                if (add(writer, &entries[i]) != 0) {
                        (void)error_set(error, "cannot write: %s", strerror(errno));
                        writer_free(writer);
                        return NULL;
                }
        }
        return finish(writer, error);
}

/* The entries of a run that are not merged yet. */
struct source {
        struct run_cursor *cursor;
        struct dedup_entry entry;
        int has_entry;
};

/* Read the next pair of identity and body. Returns 0, or -1 if the file is damaged. */
static int
advance(struct source *source)
{
        int result;

        do {
                result = run_cursor_next(source->cursor, &source->entry);
        } while (result > 0 && source->entry.body == DEDUP_ANY_BODY);
        source->has_entry = result > 0;
        return result < 0 ? -1 : 0;
}

/* Take the least entry of all sources, and add what the others know of it. Returns 1, 0 at the end, or -1. */
static int
take_least(struct source *sources, size_t n, struct dedup_entry *least)
{
        size_t first = n;

        for (size_t i = 0; i < n; i++) {
                if (sources[i].has_entry &&
                    (first == n || dedup_entry_compare(&sources[i].entry, &sources[first].entry) < 0))
                        first = i;
        }
        if (first == n)
                return 0;
        *least = sources[first].entry;
        for (size_t i = first; i < n; i++) {
                if (!sources[i].has_entry || dedup_entry_compare(&sources[i].entry, least) != 0)
                        continue;
                dedup_entry_add(least, &sources[i].entry);
                if (advance(&sources[i]) != 0)
                        return -1;
        }
        return 1;
}

/* Write all entries. Returns 0, or -1 with the reason. */
static int
merge_entries(struct run_writer *writer, struct source *sources, size_t n, const atomic_int *stop,
              int *is_damaged, struct error *error)
{
        struct dedup_entry entry;
        int result;

        while ((result = take_least(sources, n, &entry)) > 0) {
                if (atomic_load_explicit(stop, memory_order_relaxed))
                        return error_set(error, "stopped");
                if (add(writer, &entry) != 0)
                        return error_set(error, "cannot write: %s", strerror(errno));
        }
        *is_damaged = result < 0;
        return result == 0 ? 0 : error_set(error, "a file is damaged or cannot be read");
}

static int
open_sources(struct source *sources, struct run *const *runs, size_t n, int *is_damaged, struct error *error)
{
        for (size_t i = 0; i < n; i++) {
                sources[i].cursor = run_cursor_new(runs[i]);
                if (sources[i].cursor == NULL)
                        return error_set(error, "out of memory");
                *is_damaged = advance(&sources[i]) != 0;
                if (*is_damaged)
                        return error_set(error, "%s is damaged or cannot be read", run_name(runs[i]));
        }
        return 0;
}

/* Return the range of adjacent runs. */
static struct run_range
whole_range(struct run *const *runs, size_t n)
{
        struct run_range range = run_header(runs[0])->range;

        for (size_t i = 1; i < n; i++) {
                const struct run_range *next = &run_header(runs[i])->range;

                range.to = next->to;
                range.last = next->last;
                range.has_doubtful |= next->has_doubtful;
                if (next->complete_from_ms > range.complete_from_ms)
                        range.complete_from_ms = next->complete_from_ms;
        }
        return range;
}

struct run *
run_merge(int directory, struct run *const *runs, size_t n, const atomic_int *stop, int *is_damaged,
          struct error *error)
{
        const struct run_range range = whole_range(runs, n);
        struct source *sources = calloc(n, sizeof(*sources));
        struct run_writer *writer;
        struct run *run = NULL;
        uint64_t n_entries = 0;

        *is_damaged = 0;
        if (sources == NULL) {
                (void)error_set(error, "out of memory");
                return NULL;
        }
        for (size_t i = 0; i < n; i++)
                n_entries += run_header(runs[i])->n_entries;
        writer = writer_new(directory, &range, n_entries, error);
        if (writer != NULL && open_sources(sources, runs, n, is_damaged, error) == 0 &&
            merge_entries(writer, sources, n, stop, is_damaged, error) == 0) {
                run = finish(writer, error);
                writer = NULL;
        }
        writer_free(writer);
        for (size_t i = 0; i < n; i++)
                run_cursor_free(sources[i].cursor);
        free(sources);
        return run;
}
