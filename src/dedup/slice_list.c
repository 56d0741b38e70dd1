#include "dedup/slice_list.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dedup/slice.h"

#define PIECES_A_CALL 256 /* of a slice's memory, freed by one call: takes less than a millisecond */

struct slice_list {
        atomic_int n_references;
        int64_t width_ms;      /* of a slice */
        struct slice **slices; /* in the order of time, dropped ones first */
        size_t n_dropped;      /* no longer searched; their memory is being freed */
        size_t n_slices;       /* including dropped ones */
};

struct slice_list *
slice_list_new(int64_t width_ms)
{
        struct slice_list *list = calloc(1, sizeof(*list));

        if (list == NULL)
                return NULL;
        atomic_init(&list->n_references, 1);
        list->width_ms = width_ms;
        return list;
}

struct slice_list *
slice_list_hold(struct slice_list *list)
{
        atomic_fetch_add(&list->n_references, 1);
        return list;
}

void
slice_list_free(struct slice_list *list)
{
        if (list == NULL || atomic_fetch_sub(&list->n_references, 1) > 1)
                return;
        for (size_t i = 0; i < list->n_slices; i++)
                slice_free(list->slices[i]);
        free(list->slices);
        free(list);
}

/* Return the start of the slice of a time: rounded down, also before the epoch. */
static int64_t
slice_start(const struct slice_list *list, int64_t timestamp_ms)
{
        int64_t rest = timestamp_ms % list->width_ms;

        return timestamp_ms - (rest < 0 ? rest + list->width_ms : rest);
}

/* Return the slice that begins at a time; add it if it is missing. Return NULL when out of memory. */
static struct slice *
slice_at(struct slice_list *list, int64_t start_ms)
{
        struct slice **slices, *slice;
        size_t place = list->n_slices;

        while (place > list->n_dropped && slice_start_ms(list->slices[place - 1]) > start_ms)
                place--;
        if (place > list->n_dropped && slice_start_ms(list->slices[place - 1]) == start_ms)
                return list->slices[place - 1];

        slices = reallocarray(list->slices, list->n_slices + 1, sizeof(struct slice *));
        if (slices == NULL)
                return NULL;
        list->slices = slices;
        slice = slice_new(start_ms);
        if (slice == NULL)
                return NULL;
        memmove(&slices[place + 1], &slices[place], (list->n_slices - place) * sizeof(struct slice *));
        slices[place] = slice;
        list->n_slices++;
        return slice;
}

/*
 * Mix an identity with a body. A slice has one body per identity; other bodies are added under mixed
 * identities, so that there may be any number of them, and DEDUP_ANY_BODY stands for all of these. Mixing
 * again gives the identity.
 */
static void
mix(const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body, uint8_t mixed[DEDUP_IDENTITY_SIZE])
{
        memcpy(mixed, identity, DEDUP_IDENTITY_SIZE);
        for (size_t i = 0; i < sizeof(body); i++)
                mixed[i] ^= (uint8_t)(body >> 8 * i);
}

static int
is_earlier(const struct slice *slice, const struct slice_entry *entry, const struct dedup_question *question)
{
        return entry != NULL &&
               dedup_is_earlier(entry->first_offset, slice_start_ms(slice) + entry->last_ms, question);
}

static enum dedup_answer
find_in(const struct slice *slice, const struct dedup_question *question)
{
        const struct slice_entry *entry = slice_find(slice, question->identity);
        uint8_t mixed[DEDUP_IDENTITY_SIZE];
        int is_other_earlier;

        if (entry == NULL)
                return DEDUP_NEW;
        if (entry->body == question->body && is_earlier(slice, entry, question))
                return DEDUP_REPEAT;
        is_other_earlier = is_earlier(slice, entry, question);
        if (entry->body != question->body) {
                mix(question->identity, question->body, mixed);
                entry = slice_find(slice, mixed);
                if (is_earlier(slice, entry, question) && entry->body == question->body)
                        return DEDUP_REPEAT;
        }
        if (is_other_earlier)
                return DEDUP_CONFLICT;
        mix(question->identity, DEDUP_ANY_BODY, mixed);
        return is_earlier(slice, slice_find(slice, mixed), question) ? DEDUP_CONFLICT : DEDUP_NEW;
}

enum dedup_answer
slice_list_find(const struct slice_list *list, const struct dedup_question *question)
{
        enum dedup_answer answer = DEDUP_NEW;

        for (size_t i = list->n_dropped; i < list->n_slices && answer != DEDUP_REPEAT; i++) {
                const struct slice *slice = list->slices[i];

                if (slice_start_ms(slice) + list->width_ms > question->oldest_ms) {
                        enum dedup_answer here = find_in(slice, question);

                        answer = here == DEDUP_NEW ? answer : here;
                }
        }
        return answer;
}

int
slice_list_remember(struct slice_list *list, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                    int64_t offset, int64_t timestamp_ms)
{
        struct slice *own = slice_at(list, slice_start(list, timestamp_ms));
        uint8_t mixed[DEDUP_IDENTITY_SIZE];
        int is_other;

        if (own == NULL)
                return -1;
        is_other = slice_remember(own, SLICE_FIRST_BODY, identity, body, offset, timestamp_ms);
        if (is_other <= 0)
                return is_other;
        mix(identity, DEDUP_ANY_BODY, mixed);
        if (slice_remember(own, SLICE_ANY_BODY, mixed, DEDUP_ANY_BODY, offset, timestamp_ms) < 0)
                return -1;
        mix(identity, body, mixed);
        return slice_remember(own, SLICE_OTHER_BODY, mixed, body, offset, timestamp_ms) < 0 ? -1 : 0;
}

/* Free some memory of dropped slices. */
static void
free_dropped(struct slice_list *list)
{
        size_t left = PIECES_A_CALL, n = 0;

        while (n < list->n_dropped) {
                left -= slice_shrink(list->slices[n], left);
                if (left == 0)
                        break;
                slice_free(list->slices[n++]);
        }
        if (n == 0)
                return;
        list->n_dropped -= n;
        list->n_slices -= n;
        memmove(list->slices, list->slices + n, list->n_slices * sizeof(struct slice *));
}

void
slice_list_expire(struct slice_list *list, int64_t oldest_kept_ms)
{
        while (list->n_dropped < list->n_slices &&
               slice_start_ms(list->slices[list->n_dropped]) < oldest_kept_ms)
                list->n_dropped++;
        free_dropped(list);
}

size_t
slice_list_size(const struct slice_list *list)
{
        size_t n = 0;

        for (size_t i = list->n_dropped; i < list->n_slices; i++)
                n += slice_size(list->slices[i]);
        return n;
}

int64_t
slice_list_start_ms(const struct slice_list *list)
{
        return list->n_dropped == list->n_slices ? INT64_MAX : slice_start_ms(list->slices[list->n_dropped]);
}

static int
compare(const void *a, const void *b)
{
        return dedup_entry_compare(a, b);
}

static size_t
list_slice(const struct slice *slice, struct dedup_entry *entries)
{
        size_t n = 0;

        for (uint32_t i = 0; i < slice_size(slice); i++) {
                const struct slice_entry *from = slice_entry_at(slice, i);
                struct dedup_entry *entry = &entries[n];

                if (from->kind == SLICE_ANY_BODY)
                        continue;
                n++;
                memcpy(entry->identity, from->identity, sizeof(entry->identity));
                if (from->kind == SLICE_OTHER_BODY)
                        mix(from->identity, from->body, entry->identity);
                entry->body = from->body;
                entry->first_offset = from->first_offset;
                entry->last_ms = slice_start_ms(slice) + from->last_ms;
        }
        return n;
}

/* Combine equal pairs, which are from different slices, and are adjacent. Return how many are left. */
static size_t
combine(struct dedup_entry *entries, size_t n)
{
        size_t n_kept = 0;

        for (size_t i = 0; i < n; i++) {
                struct dedup_entry *last = &entries[n_kept == 0 ? 0 : n_kept - 1];

                if (n_kept == 0 || dedup_entry_compare(last, &entries[i]) != 0)
                        entries[n_kept++] = entries[i];
                else
                        dedup_entry_add(last, &entries[i]);
        }
        return n_kept;
}

struct dedup_entry *
slice_list_sort(const struct slice_list *list, size_t *n)
{
        struct dedup_entry *entries = malloc((slice_list_size(list) + 1) * sizeof(*entries));

        *n = 0;
        if (entries == NULL)
                return NULL;
        for (size_t i = list->n_dropped; i < list->n_slices; i++)
                *n += list_slice(list->slices[i], entries + *n);
        qsort(entries, *n, sizeof(*entries), compare);
        *n = combine(entries, *n);
        return entries;
}
