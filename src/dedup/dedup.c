#include "dedup/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "dedup/slice_list.h"

#define SLICES_A_WINDOW 16

struct dedup {
        uint64_t window_ms;
        int64_t complete_from_ms;
        struct slice_list *slices;
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
        dedup->complete_from_ms = complete_from_ms;
        dedup->slices = slice_list_new(slice_width(window_ms));
        if (dedup->slices == NULL) {
                free(dedup);
                return NULL;
        }
        return dedup;
}

void
dedup_free(struct dedup *dedup)
{
        if (dedup == NULL)
                return;
        slice_list_free(dedup->slices);
        free(dedup);
}

enum dedup_answer
dedup_find(const struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
           int64_t offset, int64_t timestamp_ms)
{
        struct dedup_question question = {.body = body,
                                          .offset = offset,
                                          .oldest_ms = bounded(timestamp_ms) - (int64_t)dedup->window_ms};

        memcpy(question.identity, identity, DEDUP_IDENTITY_SIZE);
        return slice_list_find(dedup->slices, &question);
}

int
dedup_remember(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
               int64_t offset, int64_t timestamp_ms)
{
        return slice_list_remember(dedup->slices, identity, body, offset, bounded(timestamp_ms));
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

void
dedup_expire(struct dedup *dedup, int64_t timestamp_ms)
{
        int64_t oldest_kept_ms = dedup_restore_start(dedup->window_ms, timestamp_ms);

        if (dedup->complete_from_ms < oldest_kept_ms)
                dedup->complete_from_ms = oldest_kept_ms;
        slice_list_expire(dedup->slices, oldest_kept_ms);
}

uint64_t
dedup_window_ms(const struct dedup *dedup)
{
        return dedup->window_ms;
}

size_t
dedup_size(const struct dedup *dedup)
{
        return slice_list_size(dedup->slices);
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
