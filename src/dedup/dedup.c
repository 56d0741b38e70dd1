#include "dedup/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "dedup/slice.h"

#define SLICES_A_WINDOW 16
#define PIECES_A_CALL 256 /* of a slice's memory, freed by one call: takes less than a millisecond */

struct dedup {
        uint64_t window_ms;
        int64_t width_ms; /* of a slice */
        int64_t complete_from_ms;
        struct slice **slices; /* in the order of time, dropped ones first */
        size_t n_dropped;      /* no longer searched; their memory is being freed */
        size_t n_slices;       /* including dropped ones */
};

static int64_t
slice_width(uint64_t window_ms)
{
        int64_t width = (int64_t)(window_ms / SLICES_A_WINDOW);

        return width > 0 ? width : 1;
}

/* Limit a timestamp, which any clock may have written, to the year 36 million, so that nothing overflows. */
static int64_t
bounded(int64_t timestamp_ms)
{
        const int64_t most = INT64_C(1) << 60;

        if (timestamp_ms > most)
                return most;
        return timestamp_ms < -most ? -most : timestamp_ms;
}

/* Return the start of the slice of a time: rounded down, also before the epoch. */
static int64_t
slice_start(int64_t width, int64_t timestamp_ms)
{
        int64_t rest = timestamp_ms % width;

        return timestamp_ms - (rest < 0 ? rest + width : rest);
}

struct dedup *
dedup_new(uint64_t window_ms, int64_t complete_from_ms)
{
        struct dedup *dedup = calloc(1, sizeof(*dedup));

        if (dedup == NULL)
                return NULL;
        dedup->window_ms = window_ms;
        dedup->width_ms = slice_width(window_ms);
        dedup->complete_from_ms = complete_from_ms;
        return dedup;
}

void
dedup_free(struct dedup *dedup)
{
        if (dedup == NULL)
                return;
        for (size_t i = 0; i < dedup->n_slices; i++)
                slice_free(dedup->slices[i]);
        free(dedup->slices);
        free(dedup);
}

/* Return the slice that begins at a time; add it if it is missing. Return NULL when out of memory. */
static struct slice *
slice_at(struct dedup *dedup, int64_t start_ms)
{
        struct slice **slices, *slice;
        size_t place = dedup->n_slices;

        while (place > dedup->n_dropped && slice_start_ms(dedup->slices[place - 1]) > start_ms)
                place--;
        if (place > dedup->n_dropped && slice_start_ms(dedup->slices[place - 1]) == start_ms)
                return dedup->slices[place - 1];

        slices = reallocarray(dedup->slices, dedup->n_slices + 1, sizeof(struct slice *));
        if (slices == NULL)
                return NULL;
        dedup->slices = slices;
        slice = slice_new(start_ms);
        if (slice == NULL)
                return NULL;
        memmove(&slices[place + 1], &slices[place], (dedup->n_slices - place) * sizeof(struct slice *));
        slices[place] = slice;
        dedup->n_slices++;
        return slice;
}

/* Return whether an entry has a record before offset and not older than oldest_ms. */
static int
is_earlier(const struct slice *slice, const struct slice_entry *entry, int64_t offset, int64_t oldest_ms)
{
        return entry != NULL && entry->first_offset < offset &&
               slice_start_ms(slice) + entry->last_ms >= oldest_ms;
}

/*
 * Mix an identity with a body. A slice has one body per identity; records with other bodies are added under
 * mixed identities, so that there may be any number of them.
 */
static void
mix(const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body, uint8_t mixed[DEDUP_IDENTITY_SIZE])
{
        memcpy(mixed, identity, DEDUP_IDENTITY_SIZE);
        for (size_t i = 0; i < sizeof(body); i++)
                mixed[i] ^= (uint8_t)(body >> 8 * i);
}

enum dedup_answer
dedup_find(const struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
           int64_t offset, int64_t timestamp_ms)
{
        int64_t oldest_ms = bounded(timestamp_ms) - (int64_t)dedup->window_ms;
        enum dedup_answer answer = DEDUP_NEW;
        uint8_t mixed[DEDUP_IDENTITY_SIZE];

        for (size_t i = dedup->n_dropped; i < dedup->n_slices; i++) {
                const struct slice *slice = dedup->slices[i];
                const struct slice_entry *entry;

                if (slice_start_ms(slice) + dedup->width_ms <= oldest_ms)
                        continue;
                entry = slice_find(slice, identity);
                if (entry != NULL && entry->body != body) {
                        if (is_earlier(slice, entry, offset, oldest_ms))
                                answer = DEDUP_CONFLICT;
                        mix(identity, body, mixed);
                        entry = slice_find(slice, mixed);
                }
                if (is_earlier(slice, entry, offset, oldest_ms) && entry->body == body)
                        return DEDUP_REPEAT;
        }
        return answer;
}

int
dedup_remember(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
               int64_t offset, int64_t timestamp_ms)
{
        struct slice *own = slice_at(dedup, slice_start(dedup->width_ms, bounded(timestamp_ms)));
        uint8_t mixed[DEDUP_IDENTITY_SIZE];
        int is_other;

        if (own == NULL)
                return -1;
        is_other = slice_remember(own, identity, body, offset, bounded(timestamp_ms));
        if (is_other <= 0)
                return is_other;
        mix(identity, body, mixed);
        return slice_remember(own, mixed, body, offset, bounded(timestamp_ms)) < 0 ? -1 : 0;
}

int
dedup_check(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body, int64_t offset,
            int64_t timestamp_ms, enum dedup_answer *answer)
{
        *answer = dedup_find(dedup, identity, body, offset, timestamp_ms);
        return dedup_remember(dedup, identity, body, offset, timestamp_ms);
}

int
dedup_covers(const struct dedup *dedup, int64_t timestamp_ms)
{
        return bounded(timestamp_ms) - (int64_t)dedup->window_ms >= dedup->complete_from_ms;
}

/* Free some memory of dropped slices. */
static void
free_dropped(struct dedup *dedup)
{
        size_t left = PIECES_A_CALL, n = 0;

        while (n < dedup->n_dropped) {
                left -= slice_shrink(dedup->slices[n], left);
                if (left == 0)
                        break;
                slice_free(dedup->slices[n++]);
        }
        if (n == 0)
                return;
        dedup->n_dropped -= n;
        dedup->n_slices -= n;
        memmove(dedup->slices, dedup->slices + n, dedup->n_slices * sizeof(struct slice *));
}

void
dedup_expire(struct dedup *dedup, int64_t timestamp_ms)
{
        int64_t oldest_kept = dedup_restore_start(dedup->window_ms, timestamp_ms);

        while (dedup->n_dropped < dedup->n_slices &&
               slice_start_ms(dedup->slices[dedup->n_dropped]) < oldest_kept)
                dedup->n_dropped++;
        if (dedup->complete_from_ms < oldest_kept)
                dedup->complete_from_ms = oldest_kept;
        free_dropped(dedup);
}

uint64_t
dedup_window_ms(const struct dedup *dedup)
{
        return dedup->window_ms;
}

size_t
dedup_size(const struct dedup *dedup)
{
        size_t n = 0;

        for (size_t i = dedup->n_dropped; i < dedup->n_slices; i++)
                n += slice_size(dedup->slices[i]);
        return n;
}

int64_t
dedup_restore_start(uint64_t window_ms, int64_t timestamp_ms)
{
        int64_t width = slice_width(window_ms);

        return slice_start(width, bounded(timestamp_ms) - (int64_t)window_ms - width);
}

int64_t
dedup_trusted_from(uint64_t window_ms, int64_t first_ms)
{
        return bounded(first_ms) + (int64_t)window_ms + 2 * slice_width(window_ms);
}
