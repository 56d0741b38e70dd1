#include "dedup/slice.h"

#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#define CHUNK_ENTRIES 1024u
#define MAX_LAST_MS ((UINT32_C(1) << 30) - 1)
#define FIRST_BUCKETS 1024u /* one page */

/*
 * Linear hashing: every new entry adds a bucket, for which one other bucket is split, so the table never
 * pauses to rehash all entries. Growing copies nothing: entries are in chunks, and the kernel remaps the
 * pages of the buckets when they need more room.
 */
struct slice {
        int64_t start_ms;
        struct slice_entry **chunks;
        uint32_t n_chunks; /* chunks has room for the next power of two */
        uint32_t n_entries;
        uint32_t *buckets; /* 1 + index of the first entry of the chain; 0: empty */
        uint32_t n_buckets;
        uint32_t max_buckets; /* capacity */
};

struct slice *
slice_new(int64_t start_ms)
{
        struct slice *slice = calloc(1, sizeof(*slice));

        if (slice == NULL)
                return NULL;
        slice->start_ms = start_ms;
        slice->n_buckets = 1;
        slice->max_buckets = FIRST_BUCKETS;
        slice->buckets = mmap(NULL, FIRST_BUCKETS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (slice->buckets == MAP_FAILED) {
                free(slice);
                return NULL;
        }
        return slice;
}

size_t
slice_shrink(struct slice *slice, size_t max)
{
        size_t n = 0;

        while (n < max && slice->n_chunks > 0) {
                free(slice->chunks[--slice->n_chunks]);
                n++;
        }
        return n;
}

void
slice_free(struct slice *slice)
{
        if (slice == NULL)
                return;
        (void)slice_shrink(slice, SIZE_MAX);
        free(slice->chunks);
        (void)munmap(slice->buckets, slice->max_buckets * sizeof(uint32_t));
        free(slice);
}

int64_t
slice_start_ms(const struct slice *slice)
{
        return slice->start_ms;
}

size_t
slice_size(const struct slice *slice)
{
        return slice->n_entries;
}

static struct slice_entry *
entry_at(const struct slice *slice, uint32_t index)
{
        return &slice->chunks[index / CHUNK_ENTRIES][index % CHUNK_ENTRIES];
}

/* An identity is a cryptographic digest, so any of its bits serve as a hash. */
static uint32_t
hash_of(const uint8_t identity[16])
{
        uint32_t hash;

        memcpy(&hash, identity, sizeof(hash));
        return hash;
}

/* Return the highest bit of a number other than 0. */
static uint32_t
top_bit(uint32_t number)
{
        return UINT32_C(1) << (31 - __builtin_clz(number));
}

/*
 * Return the bucket of a hash: its low bits, as many as the number of the last bucket has, or one less if
 * there is no such bucket yet.
 */
static uint32_t *
bucket_of(const struct slice *slice, const uint8_t identity[16])
{
        uint32_t top = top_bit(slice->n_buckets), index = hash_of(identity) & (2 * top - 1);

        return &slice->buckets[index < slice->n_buckets ? index : index - top];
}

static struct slice_entry *
find(const struct slice *slice, const uint8_t identity[16])
{
        uint32_t link = *bucket_of(slice, identity);

        while (link != 0) {
                struct slice_entry *entry = entry_at(slice, link - 1);

                if (memcmp(entry->identity, identity, sizeof(entry->identity)) == 0)
                        return entry;
                link = entry->next;
        }
        return NULL;
}

const struct slice_entry *
slice_find(const struct slice *slice, const uint8_t identity[16])
{
        return find(slice, identity);
}

/*
 * Add a bucket. Move entries there from the bucket whose number lacks its top bit, if their hash has that
 * bit.
 */
static void
split_bucket(struct slice *slice)
{
        uint32_t top = top_bit(slice->n_buckets);
        uint32_t *added = &slice->buckets[slice->n_buckets], *link = added - top;

        *added = 0;
        while (*link != 0) {
                uint32_t moved = *link;
                struct slice_entry *entry = entry_at(slice, moved - 1);

                if ((hash_of(entry->identity) & top) == 0) {
                        link = &entry->next;
                        continue;
                }
                *link = entry->next;
                entry->next = *added;
                *added = moved;
        }
        slice->n_buckets++;
}

static int
add_chunk(struct slice *slice)
{
        uint32_t n = slice->n_chunks;

        if ((n & (n - 1)) == 0) {
                struct slice_entry **chunks =
                    reallocarray(slice->chunks, n == 0 ? 1 : 2 * (size_t)n, sizeof(*chunks));

                if (chunks == NULL)
                        return -1;
                slice->chunks = chunks;
        }
        slice->chunks[n] = malloc(CHUNK_ENTRIES * sizeof(struct slice_entry));
        if (slice->chunks[n] == NULL)
                return -1;
        slice->n_chunks++;
        return 0;
}

static int
double_buckets(struct slice *slice)
{
        size_t len = slice->max_buckets * sizeof(uint32_t);
        uint32_t *buckets = mremap(slice->buckets, len, 2 * len, MREMAP_MAYMOVE);

        if (buckets == MAP_FAILED)
                return -1;
        slice->buckets = buckets;
        slice->max_buckets *= 2;
        return 0;
}

/* Make room for one more entry and one more bucket. */
static int
make_room(struct slice *slice)
{
        if (slice->n_entries == UINT32_MAX / 4)
                return -1;
        if (slice->n_entries == slice->n_chunks * CHUNK_ENTRIES && add_chunk(slice) != 0)
                return -1;
        return slice->n_buckets < slice->max_buckets ? 0 : double_buckets(slice);
}

const struct slice_entry *
slice_entry_at(const struct slice *slice, uint32_t index)
{
        return entry_at(slice, index);
}

int
slice_remember(struct slice *slice, enum slice_kind kind, const uint8_t identity[16], uint64_t body,
               int64_t offset, int64_t timestamp_ms)
{
        uint32_t since_start = (uint32_t)(timestamp_ms - slice->start_ms);
        struct slice_entry *entry = find(slice, identity);
        uint32_t *bucket;

        if (entry == NULL) {
                if (make_room(slice) != 0)
                        return -1;
                split_bucket(slice);
                bucket = bucket_of(slice, identity);
                entry = entry_at(slice, slice->n_entries);
                memcpy(entry->identity, identity, sizeof(entry->identity));
                entry->body = body;
                entry->first_offset = offset;
                entry->last_ms = since_start & MAX_LAST_MS;
                entry->kind = (uint32_t)kind & 3;
                entry->next = *bucket;
                *bucket = ++slice->n_entries;
                return 0;
        }
        if (entry->body != body)
                return 1;
        if (offset < entry->first_offset)
                entry->first_offset = offset;
        if (since_start > entry->last_ms)
                entry->last_ms = since_start & MAX_LAST_MS;
        return 0;
}
