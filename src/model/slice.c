#include "model/slice.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_ENTRIES 1024u
#define FIRST_BUCKETS 64u
#define ENTRIES_A_BUCKET 2u

/* Entries lie in chunks, so that growing copies none of them; a bucket holds 1 + index of the first of its chain. */
struct slice {
        int64_t start_ms;
        struct slice_entry **chunks;
        uint32_t *buckets;
        uint32_t n_buckets; /* a power of two */
        uint32_t n_entries;
};

struct slice *
slice_new(int64_t start_ms)
{
        struct slice *slice = calloc(1, sizeof(*slice));

        if (slice == NULL)
                return NULL;
        slice->start_ms = start_ms;
        slice->n_buckets = FIRST_BUCKETS;
        slice->buckets = calloc(FIRST_BUCKETS, sizeof(uint32_t));
        if (slice->buckets == NULL) {
                free(slice);
                return NULL;
        }
        return slice;
}

static uint32_t
chunk_count(const struct slice *slice)
{
        return slice->n_entries / CHUNK_ENTRIES + (slice->n_entries % CHUNK_ENTRIES != 0);
}

void
slice_free(struct slice *slice)
{
        if (slice == NULL)
                return;
        for (uint32_t i = 0; i < chunk_count(slice); i++)
                free(slice->chunks[i]);
        free(slice->chunks);
        free(slice->buckets);
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

/* An identity is a cryptographic digest: any of its bits are as good as a hash. */
static uint32_t *
bucket_of(const struct slice *slice, const uint8_t identity[16])
{
        uint32_t hash;

        memcpy(&hash, identity, sizeof(hash));
        return &slice->buckets[hash & (slice->n_buckets - 1)];
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

/* Twice the buckets, and every entry hung into its new one. Entries stay where they are. */
static int
grow_buckets(struct slice *slice)
{
        uint32_t n = slice->n_buckets * 2;
        uint32_t *buckets = calloc(n, sizeof(uint32_t));

        if (buckets == NULL)
                return -1;
        free(slice->buckets);
        slice->buckets = buckets;
        slice->n_buckets = n;
        for (uint32_t i = 0; i < slice->n_entries; i++) {
                struct slice_entry *entry = entry_at(slice, i);
                uint32_t *bucket = bucket_of(slice, entry->identity);

                entry->next = *bucket;
                *bucket = i + 1;
        }
        return 0;
}

/* Room for one more entry. */
static int
make_room(struct slice *slice)
{
        struct slice_entry **chunks;
        uint32_t n = chunk_count(slice);

        if (slice->n_entries == UINT32_MAX - 1)
                return -1;
        if (slice->n_entries / ENTRIES_A_BUCKET >= slice->n_buckets && grow_buckets(slice) != 0)
                return -1;
        if (slice->n_entries % CHUNK_ENTRIES != 0)
                return 0;
        chunks = reallocarray(slice->chunks, n + 1, sizeof(struct slice_entry *));
        if (chunks == NULL)
                return -1;
        slice->chunks = chunks;
        chunks[n] = malloc(CHUNK_ENTRIES * sizeof(struct slice_entry));
        return chunks[n] == NULL ? -1 : 0;
}

int
slice_remember(struct slice *slice, const uint8_t identity[16], uint64_t body, int64_t offset,
               int64_t timestamp_ms)
{
        uint32_t since_start = (uint32_t)(timestamp_ms - slice->start_ms);
        struct slice_entry *entry = find(slice, identity);
        uint32_t *bucket;

        if (entry == NULL) {
                if (make_room(slice) != 0)
                        return -1;
                bucket = bucket_of(slice, identity);
                entry = entry_at(slice, slice->n_entries);
                memcpy(entry->identity, identity, sizeof(entry->identity));
                entry->body = body;
                entry->first_offset = offset;
                entry->last_ms = since_start;
                entry->next = *bucket;
                *bucket = ++slice->n_entries;
                return 0;
        }
        if (offset < entry->first_offset) {
                entry->first_offset = offset;
                entry->body = body;
        }
        if (since_start > entry->last_ms)
                entry->last_ms = since_start;
        return 0;
}
