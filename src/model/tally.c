#include "model/tally.h"

#include <stdlib.h>
#include <string.h>

struct entry {
        uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE];
        uint32_t n_required;
        uint32_t n_allowed;
        uint32_t n_found;
        uint32_t topic;
        int32_t required_partition; /* of the last one required */
        int32_t found_partition;    /* of the last one found */
        int64_t required_offset;
        int64_t found_offset;
        uint32_t next; /* in its chain, 1 + index; 0 at the end */
};

struct tally {
        struct sketch *sketch;
        size_t max_entries;
        int exact;    /* 0: the first pass */
        size_t first; /* bucket of the sketch that this pass begins with */
        size_t end;   /* and the one that it ends before */
        struct entry *entries;
        size_t n_entries;
        size_t room;
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
        tally->sketch = sketch_new(bits);
        tally->chains = calloc(tally->n_chains, sizeof(uint32_t));
        if (tally->sketch == NULL || tally->chains == NULL) {
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
        sketch_free(tally->sketch);
        free(tally->entries);
        free(tally->chains);
        free(tally);
}

/* The sketch takes the fingerprint's low bytes for its buckets; the chains take others, or they would be few. */
static uint32_t *
chain_of(const struct tally *tally, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE])
{
        uint32_t hash;

        memcpy(&hash, fingerprint + 4, sizeof(hash));
        return &tally->chains[hash & (tally->n_chains - 1)];
}

static void
hang(struct tally *tally, size_t index)
{
        uint32_t *chain = chain_of(tally, tally->entries[index].fingerprint);

        tally->entries[index].next = *chain;
        *chain = (uint32_t)index + 1;
}

/* Twice the room for entries, and as many chains. */
static int
grow(struct tally *tally)
{
        size_t room = tally->room == 0 ? 1024 : tally->room * 2;
        struct entry *entries = reallocarray(tally->entries, room, sizeof(*entries));
        uint32_t *chains;

        if (entries == NULL)
                return -1;
        tally->entries = entries;
        chains = calloc(room, sizeof(uint32_t));
        if (chains == NULL || room > UINT32_MAX / 2) {
                free(chains);
                return -1;
        }
        free(tally->chains);
        tally->chains = chains;
        tally->n_chains = room;
        tally->room = room;
        for (size_t i = 0; i < tally->n_entries; i++)
                hang(tally, i);
        return 0;
}

/* The entry of a fingerprint, made if it is not there. NULL when memory fails. */
static struct entry *
find_entry(struct tally *tally, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE])
{
        uint32_t link = *chain_of(tally, fingerprint);
        struct entry *entry;

        while (link != 0) {
                entry = &tally->entries[link - 1];
                if (memcmp(entry->fingerprint, fingerprint, SKETCH_FINGERPRINT_SIZE) == 0)
                        return entry;
                link = entry->next;
        }
        if (tally->n_entries == tally->room && grow(tally) != 0)
                return NULL;
        entry = &tally->entries[tally->n_entries];
        memset(entry, 0, sizeof(*entry));
        memcpy(entry->fingerprint, fingerprint, SKETCH_FINGERPRINT_SIZE);
        hang(tally, tally->n_entries++);
        return entry;
}

static int
add_exactly(struct tally *tally, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE], enum sketch_side side,
            const struct tally_place *place)
{
        struct entry *entry = find_entry(tally, fingerprint);

        if (entry == NULL)
                return -1;
        entry->topic = place->topic;
        entry->n_allowed += side == SKETCH_ALLOWED;
        if (side == SKETCH_REQUIRED) {
                entry->n_required++;
                entry->required_partition = place->partition;
                entry->required_offset = place->offset;
        } else if (side == SKETCH_FOUND) {
                entry->n_found++;
                entry->found_partition = place->partition;
                entry->found_offset = place->offset;
        }
        return 0;
}

int
tally_add(struct tally *tally, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE], enum sketch_side side,
          const struct tally_place *place)
{
        size_t bucket;

        if (!tally->exact) {
                sketch_add(tally->sketch, fingerprint, side);
                return 0;
        }
        bucket = sketch_bucket(tally->sketch, fingerprint);
        if (bucket < tally->first || bucket >= tally->end || sketch_is_balanced(tally->sketch, bucket))
                return 0;
        return add_exactly(tally, fingerprint, side, place);
}

/* Report an entry if it is not as it must be. */
static void
judge_entry(const struct entry *entry, tally_report *report, void *arg)
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

/* The buckets from first on whose fingerprints there is room for, at least one unbalanced one. Returns where they end. */
static size_t
end_of_group(const struct tally *tally, size_t first)
{
        uint64_t n = 0;
        size_t bucket;

        for (bucket = first; bucket < sketch_size(tally->sketch); bucket++) {
                uint64_t more = 0;

                if (!sketch_is_balanced(tally->sketch, bucket))
                        more = sketch_count(tally->sketch, bucket);
                if (n > 0 && n + more > tally->max_entries)
                        break;
                n += more;
        }
        return bucket;
}

static int
has_unbalanced(const struct tally *tally, size_t first, size_t end)
{
        for (size_t bucket = first; bucket < end; bucket++) {
                if (!sketch_is_balanced(tally->sketch, bucket))
                        return 1;
        }
        return 0;
}

/* How many passes it takes from a bucket on. */
static size_t
count_passes(const struct tally *tally, size_t first)
{
        size_t n = 0;

        while (first < sketch_size(tally->sketch)) {
                size_t end = end_of_group(tally, first);

                n += has_unbalanced(tally, first, end) ? 1 : 0;
                first = end;
        }
        return n;
}

size_t
tally_end_pass(struct tally *tally, tally_report *report, void *arg)
{
        for (size_t i = 0; i < tally->n_entries; i++)
                judge_entry(&tally->entries[i], report, arg);
        clear(tally);
        tally->exact = 1;
        tally->first = tally->end;
        tally->end = end_of_group(tally, tally->first);
        return count_passes(tally, tally->first);
}
