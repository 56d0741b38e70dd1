#include "model/replay.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES 256

struct entry {
        uint8_t signature[16]; /* half of an HMAC suffices to distinguish signatures */
        uint32_t source;       /* hash_source() */
        uint32_t next;         /* 1 + index of the next in the chain; 0 at the end */
        uint32_t n_attempts;   /* begun and not ended */
        uint8_t may_be_stored; /* by an attempt that has ended */
        uint8_t is_dropped;    /* in no chain; its place in the ring becomes free in turn */
        char delivery_id[DELIVERY_ID_MAX + 1];
};

/* A ring of entries, oldest first, and a bucket for each place in the ring. */
struct replay {
        struct entry *entries;
        uint32_t *buckets;
        size_t capacity; /* a power of two */
        size_t max_entries;
        size_t oldest;
        size_t n;
};

struct replay *
replay_new(size_t max_entries)
{
        struct replay *replay = calloc(1, sizeof(*replay));

        if (replay == NULL)
                return NULL;
        replay->max_entries = max_entries;
        replay->capacity = FIRST_ENTRIES;
        replay->entries = calloc(FIRST_ENTRIES, sizeof(struct entry));
        replay->buckets = calloc(FIRST_ENTRIES, sizeof(uint32_t));
        if (replay->entries == NULL || replay->buckets == NULL) {
                replay_free(replay);
                return NULL;
        }
        return replay;
}

void
replay_free(struct replay *replay)
{
        if (replay == NULL)
                return;
        free(replay->entries);
        free(replay->buckets);
        free(replay);
}

static uint32_t *
bucket_of(const struct replay *replay, const uint8_t *signature)
{
        uint64_t hash;

        memcpy(&hash, signature, sizeof(hash));
        return &replay->buckets[hash & (replay->capacity - 1)];
}

static void
link_entry(struct replay *replay, size_t index)
{
        struct entry *entry = &replay->entries[index];
        uint32_t *bucket = bucket_of(replay, entry->signature);

        entry->next = *bucket;
        *bucket = (uint32_t)index + 1;
}

static void
unlink_entry(struct replay *replay, size_t index)
{
        const struct entry *entry = &replay->entries[index];
        uint32_t *link = bucket_of(replay, entry->signature);

        while (*link != index + 1)
                link = &replay->entries[*link - 1].next;
        *link = entry->next;
}

static void
drop_oldest(struct replay *replay)
{
        if (!replay->entries[replay->oldest].is_dropped)
                unlink_entry(replay, replay->oldest);
        replay->oldest = (replay->oldest + 1) & (replay->capacity - 1);
        replay->n--;
}

/* Double the capacity. On failure change nothing. */
static void
grow(struct replay *replay)
{
        size_t capacity = replay->capacity * 2;
        struct entry *entries = calloc(capacity, sizeof(struct entry));
        uint32_t *buckets = calloc(capacity, sizeof(uint32_t));

        if (entries == NULL || buckets == NULL) {
                free(entries);
                free(buckets);
                return;
        }
        for (size_t i = 0; i < replay->n; i++)
                entries[i] = replay->entries[(replay->oldest + i) & (replay->capacity - 1)];
        free(replay->entries);
        free(replay->buckets);
        replay->entries = entries;
        replay->buckets = buckets;
        replay->capacity = capacity;
        replay->oldest = 0;
        for (size_t i = 0; i < replay->n; i++) {
                if (!replay->entries[i].is_dropped)
                        link_entry(replay, i);
        }
}

/* Return the FNV-1a hash of a source name, to distinguish the few sources of a configuration. */
static uint32_t
hash_source(const char *source)
{
        uint32_t hash = UINT32_C(2166136261);

        for (; *source != '\0'; source++)
                hash = (hash ^ (uint8_t)*source) * UINT32_C(16777619);
        return hash;
}

static struct entry *
find(const struct replay *replay, uint32_t source, const uint8_t *signature)
{
        for (uint32_t link = *bucket_of(replay, signature); link != 0;
             link = replay->entries[link - 1].next) {
                struct entry *entry = &replay->entries[link - 1];

                if (entry->source == source &&
                    memcmp(entry->signature, signature, sizeof(entry->signature)) == 0)
                        return entry;
        }
        return NULL;
}

/* Return a new entry with one attempt, or NULL if there is no room. */
static struct entry *
remember(struct replay *replay, uint32_t source, const uint8_t *signature, const char *delivery_id)
{
        struct entry *entry;
        size_t index;

        if (replay->max_entries == 0)
                return NULL;
        if (replay->n == replay->capacity && replay->n < replay->max_entries)
                grow(replay);
        if (replay->n == replay->capacity || replay->n == replay->max_entries)
                drop_oldest(replay);
        index = (replay->oldest + replay->n++) & (replay->capacity - 1);
        entry = &replay->entries[index];
        memcpy(entry->signature, signature, sizeof(entry->signature));
        entry->source = source;
        entry->n_attempts = 1;
        entry->may_be_stored = 0;
        entry->is_dropped = 0;
        strncpy(entry->delivery_id, delivery_id, DELIVERY_ID_MAX);
        entry->delivery_id[DELIVERY_ID_MAX] = '\0';
        link_entry(replay, index);
        return entry;
}

enum replay_verdict
replay_begin(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
             const char *delivery_id, char original[DELIVERY_ID_MAX + 1])
{
        const uint32_t source = hash_source(source_name);
        struct entry *known = find(replay, source, signature);

        if (known == NULL) {
                (void)remember(replay, source, signature, delivery_id);
                return REPLAY_NONE;
        }
        if (strcmp(known->delivery_id, delivery_id) == 0) {
                known->n_attempts++;
                return REPLAY_NONE;
        }
        memcpy(original, known->delivery_id, sizeof(known->delivery_id));
        return known->may_be_stored ? REPLAY_FOUND : REPLAY_UNDECIDED;
}

/* Free the places of dropped entries at the young end of the ring. */
static void
drop(struct replay *replay, struct entry *entry)
{
        unlink_entry(replay, (size_t)(entry - replay->entries));
        entry->is_dropped = 1;
        while (replay->n > 0 &&
               replay->entries[(replay->oldest + replay->n - 1) & (replay->capacity - 1)].is_dropped)
                replay->n--;
}

void
replay_end(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
           const char *delivery_id, int may_be_stored)
{
        const uint32_t source = hash_source(source_name);
        struct entry *known = find(replay, source, signature);

        /* It may have been evicted meanwhile. */
        if (known == NULL && may_be_stored)
                known = remember(replay, source, signature, delivery_id);
        if (known == NULL || strcmp(known->delivery_id, delivery_id) != 0)
                return;
        known->may_be_stored |= may_be_stored != 0;
        if (known->n_attempts > 0)
                known->n_attempts--;
        if (known->n_attempts == 0 && !known->may_be_stored)
                drop(replay, known);
}
