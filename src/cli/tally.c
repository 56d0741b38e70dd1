#include "cli/tally.h"

#include <stdlib.h>
#include <string.h>

/* The sums of all fingerprints whose first half selects this bucket. */
struct tally_bucket {
        uint32_t n_required;
        uint32_t n_allowed;
        uint32_t n_found;
        uint64_t surplus; /* second halves found minus second halves required, modulo 2^64 */
        uint64_t allowed; /* second halves allowed, modulo 2^64 */
};

/* An exact count, for a fingerprint in an unbalanced bucket. */
struct tally_entry {
        uint8_t fingerprint[TALLY_FINGERPRINT_SIZE];
        uint32_t n_required;
        uint32_t n_allowed;
        uint32_t n_found;
        uint32_t topic;
        int32_t required_partition; /* of the last required record */
        int32_t found_partition;    /* of the last record found */
        int64_t required_offset;
        int64_t found_offset;
        uint32_t next; /* in the hash chain: index + 1, or 0 at the end */
};

struct tally {
        struct tally_bucket *buckets;
        size_t n_buckets; /* a power of two */
        size_t max_entries;
        int is_exact; /* 0 in the first pass */
        size_t begin; /* first bucket that this pass counts exactly */
        size_t end;   /* and the bucket after the last */
        struct tally_entry *entries;
        size_t n_entries;
        size_t capacity;
        uint32_t *chains;
        size_t n_chains; /* a power of two */
};

struct tally *
tally_new(unsigned bits, size_t max_entries)
{
        struct tally *tally = calloc(1, sizeof(*tally));

        if (tally == NULL)
                return NULL;
        tally->max_entries = max_entries;
        tally->n_chains = 1024;
        tally->n_buckets = (size_t)1 << bits;
        tally->buckets = calloc(tally->n_buckets, sizeof(struct tally_bucket));
        tally->chains = calloc(tally->n_chains, sizeof(uint32_t));
        if (tally->buckets == NULL || tally->chains == NULL) {
                tally_free(tally);
                return NULL;
        }
        return tally;
}

void
tally_free(struct tally *tally)
{
        if (tally == NULL)
                return;
        free(tally->buckets);
        free(tally->entries);
        free(tally->chains);
        free(tally);
}

static struct tally_bucket *
find_bucket(const struct tally *tally, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE])
{
        uint64_t half;

        memcpy(&half, fingerprint, sizeof(half));
        return &tally->buckets[(size_t)half & (tally->n_buckets - 1)];
}

static void
add_to_bucket(struct tally_bucket *bucket, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE],
              enum tally_side side)
{
        uint64_t half;

        memcpy(&half, fingerprint + sizeof(half), sizeof(half));
        switch (side) {
        case TALLY_REQUIRED:
                bucket->n_required++;
                bucket->surplus -= half;
                break;
        case TALLY_ALLOWED:
                bucket->n_allowed++;
                bucket->allowed += half;
                break;
        case TALLY_FOUND:
                bucket->n_found++;
                bucket->surplus += half;
                break;
        }
}

/* Return whether exactly the required records were found, with all or none of the allowed ones. */
static int
is_balanced(const struct tally_bucket *bucket)
{
        if (bucket->n_found == bucket->n_required && bucket->surplus == 0)
                return 1;
        return bucket->n_found == (uint64_t)bucket->n_required + bucket->n_allowed &&
               bucket->surplus == bucket->allowed;
}

/* Return an upper limit for the number of different fingerprints in a bucket. */
static uint64_t
count_fingerprints(const struct tally_bucket *bucket)
{
        return (uint64_t)bucket->n_required + bucket->n_allowed + bucket->n_found;
}

/* Buckets use the first bytes of a fingerprint. Chains use others, so that a bucket has many chains. */
static uint32_t *
chain_of(const struct tally *tally, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE])
{
        uint32_t hash;

        memcpy(&hash, fingerprint + 4, sizeof(hash));
        return &tally->chains[hash & (tally->n_chains - 1)];
}

static void
link_entry(struct tally *tally, size_t index)
{
        uint32_t *chain = chain_of(tally, tally->entries[index].fingerprint);

        tally->entries[index].next = *chain;
        *chain = (uint32_t)index + 1;
}

/* Double the room for entries, and make as many chains. */
static int
grow(struct tally *tally)
{
        size_t capacity = tally->capacity == 0 ? 1024 : tally->capacity * 2;
        struct tally_entry *entries = reallocarray(tally->entries, capacity, sizeof(*entries));
        uint32_t *chains;

        if (entries == NULL)
                return -1;
        tally->entries = entries;
        chains = calloc(capacity, sizeof(uint32_t));
        if (chains == NULL || capacity > UINT32_MAX / 2) {
                free(chains);
                return -1;
        }
        free(tally->chains);
        tally->chains = chains;
        tally->n_chains = capacity;
        tally->capacity = capacity;
        for (size_t i = 0; i < tally->n_entries; i++)
                link_entry(tally, i);
        return 0;
}

/* Find or create the entry of a fingerprint. Returns NULL when memory fails. */
static struct tally_entry *
find_entry(struct tally *tally, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE])
{
        uint32_t link = *chain_of(tally, fingerprint);
        struct tally_entry *entry;

        while (link != 0) {
                entry = &tally->entries[link - 1];
                if (memcmp(entry->fingerprint, fingerprint, TALLY_FINGERPRINT_SIZE) == 0)
                        return entry;
                link = entry->next;
        }
        if (tally->n_entries == tally->capacity && grow(tally) != 0)
                return NULL;
        entry = &tally->entries[tally->n_entries];
        memset(entry, 0, sizeof(*entry));
        memcpy(entry->fingerprint, fingerprint, TALLY_FINGERPRINT_SIZE);
        link_entry(tally, tally->n_entries++);
        return entry;
}

static int
add_exactly(struct tally *tally, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE], enum tally_side side,
            const struct tally_place *place)
{
        struct tally_entry *entry = find_entry(tally, fingerprint);

        if (entry == NULL)
                return -1;
        entry->topic = place->topic;
        entry->n_allowed += side == TALLY_ALLOWED;
        if (side == TALLY_REQUIRED) {
                entry->n_required++;
                entry->required_partition = place->partition;
                entry->required_offset = place->offset;
        } else if (side == TALLY_FOUND) {
                entry->n_found++;
                entry->found_partition = place->partition;
                entry->found_offset = place->offset;
        }
        return 0;
}

int
tally_add(struct tally *tally, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE], enum tally_side side,
          const struct tally_place *place)
{
        struct tally_bucket *bucket = find_bucket(tally, fingerprint);
        size_t index = (size_t)(bucket - tally->buckets);

        if (!tally->is_exact) {
                add_to_bucket(bucket, fingerprint, side);
                return 0;
        }
        if (index < tally->begin || index >= tally->end || is_balanced(bucket))
                return 0;
        return add_exactly(tally, fingerprint, side, place);
}

/* Report an entry whose counts do not match. */
static void
judge_entry(const struct tally_entry *entry, tally_report *report, void *arg)
{
        uint64_t most = (uint64_t)entry->n_required + entry->n_allowed;
        struct tally_finding finding = {.place.topic = entry->topic};

        if (entry->n_found >= entry->n_required && entry->n_found <= most)
                return;
        if (entry->n_found < entry->n_required) {
                finding.fault = TALLY_LOST;
                finding.n = entry->n_required - entry->n_found;
                finding.place.partition = entry->required_partition;
                finding.place.offset = entry->required_offset;
        } else {
                finding.fault = most > 0 ? TALLY_DUPLICATED : TALLY_UNEXPECTED;
                finding.n = entry->n_found - most;
                finding.place.partition = entry->found_partition;
                finding.place.offset = entry->found_offset;
        }
        report(&finding, arg);
}

static void
clear(struct tally *tally)
{
        tally->n_entries = 0;
        memset(tally->chains, 0, tally->n_chains * sizeof(uint32_t));
}

/* Return the end of the buckets that one pass can count, at least one unbalanced bucket from begin on. */
static size_t
find_pass_end(const struct tally *tally, size_t begin)
{
        uint64_t n = 0;
        size_t i;

        for (i = begin; i < tally->n_buckets; i++) {
                const struct tally_bucket *bucket = &tally->buckets[i];
                uint64_t more = is_balanced(bucket) ? 0 : count_fingerprints(bucket);

                if (n > 0 && n + more > tally->max_entries)
                        break;
                n += more;
        }
        return i;
}

static int
has_unbalanced(const struct tally *tally, size_t begin, size_t end)
{
        for (size_t i = begin; i < end; i++) {
                if (!is_balanced(&tally->buckets[i]))
                        return 1;
        }
        return 0;
}

/* Return the number of passes that count the unbalanced buckets from begin on. */
static size_t
count_passes(const struct tally *tally, size_t begin)
{
        size_t n = 0;

        while (begin < tally->n_buckets) {
                size_t end = find_pass_end(tally, begin);

                n += has_unbalanced(tally, begin, end) ? 1 : 0;
                begin = end;
        }
        return n;
}

size_t
tally_end_pass(struct tally *tally, tally_report *report, void *arg)
{
        for (size_t i = 0; i < tally->n_entries; i++)
                judge_entry(&tally->entries[i], report, arg);
        clear(tally);
        tally->is_exact = 1;
        tally->begin = tally->end;
        tally->end = find_pass_end(tally, tally->begin);
        return count_passes(tally, tally->begin);
}
