#include "dedup/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"

#define NAME_SIZE 64
#define CURSOR_BLOCKS 128

struct run {
        atomic_int n_references;
        int fd;
        struct run_header header;
        uint64_t n_blocks;
        uint8_t *filter; /* the memory of both, aligned to a line */
        uint32_t *index; /* behind the filter */
        char name[NAME_SIZE];
};

/* Read exactly len bytes. Returns 0, or -1 with errno set; 0 there means that the file is too short. */
static int
read_at(int fd, void *bytes, size_t len, uint64_t offset)
{
        uint8_t *at = bytes;

        while (len > 0) {
                ssize_t n = pread(fd, at, len, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n == 0)
                        errno = 0;
                if (n <= 0)
                        return -1;
                at += n;
                offset += (uint64_t)n;
                len -= (size_t)n;
        }
        return 0;
}

/* Read index and filter. Returns 0, or -1 with the reason. */
static int
load(struct run *run, struct error *error)
{
        size_t index_len = run->n_blocks * sizeof(uint32_t), filter_len = run->header.n_lines * RUN_LINE_SIZE;
        uint64_t at = RUN_BLOCK_SIZE + run->n_blocks * RUN_BLOCK_SIZE;

        run->filter = aligned_alloc(RUN_LINE_SIZE, filter_len + (index_len + RUN_LINE_SIZE - 1) /
                                                                    RUN_LINE_SIZE * RUN_LINE_SIZE);
        if (run->filter == NULL)
                return error_set(error, "out of memory");
        run->index = (uint32_t *)(void *)(run->filter + filter_len);
        if (read_at(run->fd, run->index, index_len, at) != 0 ||
            read_at(run->fd, run->filter, filter_len, at + index_len) != 0)
                return error_set(error, "it cannot be read: %s", strerror(errno));
        if (crc32c_add(0, run->index, index_len) != run->header.index_crc ||
            crc32c_add(0, run->filter, filter_len) != run->header.filter_crc)
                return error_set(error, "the checksum of its index or filter is wrong");
        (void)posix_fadvise(run->fd, 0, 0, POSIX_FADV_RANDOM);
        return 0;
}

/* Verify the file. Returns 0, or -1 with the reason. */
static int
verify(struct run *run, const uint8_t owner[16], struct error *error)
{
        const char *fault;
        struct stat status;

        if (fstat(run->fd, &status) != 0)
                return error_set(error, "it cannot be read: %s", strerror(errno));
        if (!S_ISREG(status.st_mode))
                return error_set(error, "it is not a regular file");
        if (read_at(run->fd, &run->header, sizeof(run->header), 0) != 0)
                return error_set(error, "its header cannot be read: %s",
                                 errno == 0 ? "the file is too short" : strerror(errno));
        fault = run_header_fault(&run->header, owner, (uint64_t)status.st_size);
        run->n_blocks = fault == NULL ? run_n_blocks(&run->header) : 0;
        return fault == NULL ? load(run, error) : error_set(error, "%s", fault);
}

struct run *
run_open_fd(int fd, const char *name, const uint8_t owner[16], struct error *error)
{
        struct run *run = calloc(1, sizeof(*run));

        if (run == NULL || strlen(name) >= NAME_SIZE) {
                (void)close(fd);
                free(run);
                (void)error_set(error, "out of memory");
                return NULL;
        }
        atomic_init(&run->n_references, 1);
        run->fd = fd;
        memcpy(run->name, name, strlen(name) + 1);
        if (verify(run, owner, error) != 0) {
                run_free(run);
                return NULL;
        }
        return run;
}

struct run *
run_open(int directory, const char *name, const uint8_t owner[16], struct error *error)
{
        int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        if (fd < 0) {
                (void)error_set(error, "it cannot be opened: %s", strerror(errno));
                return NULL;
        }
        return run_open_fd(fd, name, owner, error);
}

struct run *
run_hold(struct run *run)
{
        atomic_fetch_add(&run->n_references, 1);
        return run;
}

void
run_free(struct run *run)
{
        if (run == NULL || atomic_fetch_sub(&run->n_references, 1) > 1)
                return;
        (void)close(run->fd);
        free(run->filter);
        free(run);
}

const struct run_header *
run_header(const struct run *run)
{
        return &run->header;
}

const char *
run_name(const struct run *run)
{
        return run->name;
}

size_t
run_memory(const struct run *run)
{
        return sizeof(*run) + run->n_blocks * sizeof(uint32_t) + run->header.n_lines * RUN_LINE_SIZE;
}

uint64_t
run_file_size(const struct run *run)
{
        return run_size(&run->header);
}

/* Read n blocks and verify them. Returns 0 or -1. */
static int
read_blocks(const struct run *run, uint64_t number, size_t n, struct run_block *blocks)
{
        if (read_at(run->fd, blocks, n * RUN_BLOCK_SIZE, RUN_BLOCK_SIZE + number * RUN_BLOCK_SIZE) != 0)
                return -1;
        for (size_t i = 0; i < n; i++) {
                if (blocks[i].crc != run_block_crc(run->header.id, number + i, &blocks[i]))
                        return -1;
        }
        return 0;
}

/* Number of entries in a block. */
static size_t
block_len(const struct run *run, uint64_t number)
{
        uint64_t left = run->header.n_entries - number * RUN_BLOCK_ENTRIES;

        return left < RUN_BLOCK_ENTRIES ? (size_t)left : RUN_BLOCK_ENTRIES;
}

static void
unpack(const struct run *run, const struct run_disk_entry *packed, struct dedup_entry *entry)
{
        memcpy(entry->identity, packed->identity, sizeof(entry->identity));
        entry->body = packed->body;
        entry->first_offset = run->header.range.from + packed->first_offset;
        entry->last_ms = packed->last_ms;
}

void
run_prefetch(const struct run *run, const struct dedup_question *question)
{
        __builtin_prefetch(run_filter_line(run->filter, run->header.n_lines, question->identity));
}

/*
 * Return the number of the first block whose key in the index is at least this one. Keys are evenly
 * distributed, so begin where it should be, and double the steps from there.
 */
static uint64_t
search_index(const struct run *run, uint64_t key)
{
        uint64_t low = 0, high = run->n_blocks, guess = (key * run->n_blocks) >> 32;

        if (key > UINT32_MAX)
                return high;
        for (uint64_t step = 8; low < high; step *= 2) {
                if (run->index[guess] < key) {
                        low = guess + 1;
                        if (step > high - low)
                                break;
                        guess = low + step - 1;
                } else {
                        high = guess;
                        if (step > high - low)
                                break;
                        guess = high - step;
                }
        }
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;

                if (run->index[middle] < key)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* A block that was read, of those in which an identity can be. */
struct place {
        uint64_t first, last; /* the blocks in which it can be */
        uint64_t number;
        struct run_block block;
};

static int
load_place(const struct run *run, struct place *place, uint64_t number)
{
        place->number = number;
        return read_blocks(run, number, 1, &place->block);
}

/*
 * Find the first entry of an identity whose body is at least the given one. Returns 1, 0 if there is none, or
 * -1.
 */
static int
seek(const struct run *run, struct place *place, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
     struct dedup_entry *entry)
{
        struct dedup_entry wanted = {.body = body};
        uint64_t low = place->first, high = place->last;

        memcpy(wanted.identity, identity, sizeof(wanted.identity));
        /* Find the last block whose first entry is not after the wanted one, if there are several. */
        while (low < high) {
                uint64_t middle = low + (high - low + 1) / 2;

                if (load_place(run, place, middle) != 0)
                        return -1;
                unpack(run, &place->block.entries[0], entry);
                if (dedup_entry_compare(entry, &wanted) <= 0)
                        low = middle;
                else
                        high = middle - 1;
        }
        for (uint64_t number = low; number <= place->last; number++) {
                if (place->number != number && load_place(run, place, number) != 0)
                        return -1;
                for (size_t i = 0; i < block_len(run, number); i++) {
                        unpack(run, &place->block.entries[i], entry);
                        if (dedup_entry_compare(entry, &wanted) >= 0)
                                return memcmp(entry->identity, identity, DEDUP_IDENTITY_SIZE) == 0;
                }
        }
        return 0;
}

/* Find the blocks in which an identity can be: the one before its key, and those that begin with it. */
static void
find_place(const struct run *run, const uint8_t identity[DEDUP_IDENTITY_SIZE], struct place *place)
{
        uint64_t key = run_index_key(identity), first = search_index(run, key);

        place->number = UINT64_MAX;
        place->first = first > 0 ? first - 1 : 0;
        place->last = place->first;
        if (first < run->n_blocks && run->index[first] == key)
                place->last = search_index(run, key + 1) - 1;
}

int
run_find(const struct run *run, const struct dedup_question *question, enum dedup_answer *answer)
{
        struct dedup_entry entry;
        struct place place;
        int found;

        *answer = DEDUP_NEW;
        if (run->header.most_ms < question->oldest_ms ||
            !run_filter_has(run->filter, run->header.n_lines, question->identity))
                return 0;
        find_place(run, question->identity, &place);
        found = seek(run, &place, question->identity, question->body, &entry);
        if (found > 0 && entry.body == question->body &&
            dedup_is_earlier(entry.first_offset, entry.last_ms, question)) {
                *answer = DEDUP_REPEAT;
                return 0;
        }
        /* The last entry of an identity is for all of its bodies, if it has several. */
        if (found >= 0)
                found = seek(run, &place, question->identity, DEDUP_ANY_BODY, &entry);
        if (found == 0)
                found = seek(run, &place, question->identity, 0, &entry);
        if (found > 0 && dedup_is_earlier(entry.first_offset, entry.last_ms, question))
                *answer = DEDUP_CONFLICT;
        return found < 0 ? -1 : 0;
}

struct run_cursor {
        struct run *run;
        uint64_t number; /* of the first block in memory */
        size_t n_blocks;
        uint64_t next; /* the number of the next entry */
        struct run_block blocks[CURSOR_BLOCKS];
};

struct run_cursor *
run_cursor_new(struct run *run)
{
        struct run_cursor *cursor = malloc(sizeof(*cursor));

        if (cursor == NULL)
                return NULL;
        cursor->run = run_hold(run);
        cursor->number = cursor->next = 0;
        cursor->n_blocks = 0;
        return cursor;
}

void
run_cursor_free(struct run_cursor *cursor)
{
        if (cursor == NULL)
                return;
        run_free(cursor->run);
        free(cursor);
}

int
run_cursor_next(struct run_cursor *cursor, struct dedup_entry *entry)
{
        const struct run *run = cursor->run;
        uint64_t number = cursor->next / RUN_BLOCK_ENTRIES;

        if (cursor->next == run->header.n_entries)
                return 0;
        if (number >= cursor->number + cursor->n_blocks) {
                uint64_t left = run->n_blocks - number;

                cursor->number = number;
                cursor->n_blocks = left < CURSOR_BLOCKS ? (size_t)left : CURSOR_BLOCKS;
                if (read_blocks(run, number, cursor->n_blocks, cursor->blocks) != 0)
                        return -1;
        }
        unpack(run, &cursor->blocks[number - cursor->number].entries[cursor->next % RUN_BLOCK_ENTRIES],
               entry);
        cursor->next++;
        return 1;
}
