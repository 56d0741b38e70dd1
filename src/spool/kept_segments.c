#include "spool/kept_segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define FAILED_RETRY_MS 2000
#define UNOPENED_RETRY_MS 10000 /* descriptors or memory may be back soon */
#define OTHER_RETRY_MS 600000
#define MAX_OPEN 1024 /* of those whose records' fates are remembered */

void
kept_segments_clear(struct kept_segments *kept)
{
        for (size_t i = 0; i < kept->n; i++)
                segment_drain_close(kept->items[i].segment);
        free(kept->items);
        memset(kept, 0, sizeof(*kept));
}

static int64_t
retry_after_ms(const struct segment_drain *segment, int has_failed)
{
        if (has_failed)
                return FAILED_RETRY_MS;
        if (segment == NULL || segment_drain_result(segment) == SEGMENT_DRAIN_MORE)
                return UNOPENED_RETRY_MS;
        return OTHER_RETRY_MS;
}

int64_t
kept_segments_add(struct kept_segments *kept, uint64_t number, struct segment_drain *segment, int has_failed)
{
        int64_t pause_ms = retry_after_ms(segment, has_failed), retry_ms = clock_monotonic_ms() + pause_ms;
        int was_read = segment != NULL;
        int64_t oldest_ms = segment == NULL ? 0 : segment_drain_oldest_ms(segment);

        if (kept->n >= MAX_OPEN) {
                segment_drain_close(segment);
                segment = NULL;
        }
        kept->items = mem_resize(kept->items, kept->n + 1, sizeof(*kept->items));
        kept->items[kept->n++] =
            (struct kept_segment){number, segment, retry_ms, has_failed, was_read, oldest_ms};
        return pause_ms;
}

static struct kept_segment *
find(const struct kept_segments *kept, uint64_t number)
{
        for (size_t i = 0; i < kept->n; i++) {
                if (kept->items[i].number == number)
                        return &kept->items[i];
        }
        return NULL;
}

int
kept_segments_take(struct kept_segments *kept, uint64_t number, struct kept_segment *found)
{
        struct kept_segment *item = find(kept, number);

        if (item == NULL)
                return 0;
        *found = *item;
        *item = kept->items[--kept->n];
        return 1;
}

void
kept_segments_choose(const struct kept_segments *kept, const struct spool_listing *listing, uint64_t limit,
                     uint64_t drained, struct kept_choice *choice)
{
        int64_t now_ms = clock_monotonic_ms(), since_ms = now_ms + 1;

        memset(choice, 0, sizeof(*choice));
        for (size_t i = 0; i < listing->n_segments && listing->segments[i].number < limit; i++) {
                const struct kept_segment *item = find(kept, listing->segments[i].number);

                if (listing->segments[i].number == drained)
                        continue;
                if (item == NULL) {
                        choice->fresh = choice->fresh == 0 ? listing->segments[i].number : choice->fresh;
                        continue;
                }
                choice->n_failed += item->has_failed != 0;
                choice->n_others += !item->has_failed;
                if (item->oldest_ms != 0 && (choice->oldest_ms == 0 || item->oldest_ms < choice->oldest_ms))
                        choice->oldest_ms = item->oldest_ms;
                if (item->retry_ms <= now_ms && item->retry_ms < since_ms) {
                        since_ms = item->retry_ms;
                        choice->due = item->number;
                }
        }
}
