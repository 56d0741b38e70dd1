#include "spool/kept_segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define FAILED_RETRY_MS 2000
#define UNREAD_RETRY_MS 10000 /* descriptors, memory or the disk may be back soon; then twice as long */
#define MAX_UNREAD 6          /* times, before OTHER_RETRY_MS */
#define OTHER_RETRY_MS 600000

void
kept_segments_clear(struct kept_segments *kept)
{
        for (size_t i = 0; i < kept->n; i++)
                segment_drain_close(kept->items[i].segment);
        free(kept->items);
        log_flood_end(&kept->left_behind);
        memset(kept, 0, sizeof(*kept));
}

/* A segment that cannot be opened is tried again soon; reading one may take minutes, in vain. */
static int64_t
retry_after_ms(const struct segment_drain *segment, int has_failed)
{
        enum segment_drain_result result =
            segment == NULL ? SEGMENT_DRAIN_UNREADABLE : segment_drain_result(segment);

        unsigned n = segment == NULL ? 0 : segment_drain_n_unreadable(segment);

        if (has_failed)
                return FAILED_RETRY_MS;
        if ((result != SEGMENT_DRAIN_MORE && result != SEGMENT_DRAIN_UNREADABLE) || n > MAX_UNREAD)
                return OTHER_RETRY_MS;
        return n == 0 ? UNREAD_RETRY_MS : UNREAD_RETRY_MS << (n - 1);
}

/* Return the index of the first segment with at least this number. */
static size_t
find(const struct kept_segments *kept, uint64_t number)
{
        size_t low = 0, high = kept->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (kept->items[middle].number < number)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static const struct kept_segment *
get(const struct kept_segments *kept, uint64_t number)
{
        size_t at = find(kept, number);

        return at < kept->n && kept->items[at].number == number ? &kept->items[at] : NULL;
}

void
kept_segments_add(struct kept_segments *kept, uint64_t number, struct segment_drain *segment, int is_counted,
                  const char *reason)
{
        int has_failed = reason == NULL;
        int64_t pause_ms = retry_after_ms(segment, has_failed), retry_ms = clock_monotonic_ms() + pause_ms;
        int64_t oldest_ms = segment == NULL ? 0 : segment_drain_oldest_ms(segment);
        size_t at = find(kept, number);
        char name[SPOOL_NAME_SIZE], quoted[LOG_QUOTED_SIZE];

        kept->items = mem_resize(kept->items, kept->n + 1, sizeof(*kept->items));
        memmove(&kept->items[at + 1], &kept->items[at], (kept->n - at) * sizeof(*kept->items));
        kept->items[at] = (struct kept_segment){number, segment, retry_ms, has_failed, is_counted, oldest_ms};
        kept->n++;
        if (segment != NULL)
                atomic_fetch_add(&kept->stats->refused, segment_drain_pass(segment)->n_refused);
        if (!has_failed)
                log_flood(&kept->left_behind, LOG_LEVEL_WARNING,
                          "a segment of the spool stays and is tried again segment=%s after_s=%d "
                          "reason=%s",
                          spool_directory_name(number, name), (int)(pause_ms / 1000),
                          log_quote(reason, quoted));
}

int
kept_segments_take(struct kept_segments *kept, uint64_t number, struct kept_segment *found)
{
        size_t at = find(kept, number);

        if (get(kept, number) == NULL)
                return 0;
        *found = kept->items[at];
        if (found->segment != NULL)
                atomic_fetch_sub(&kept->stats->refused, segment_drain_pass(found->segment)->n_refused);
        memmove(&kept->items[at], &kept->items[at + 1], (--kept->n - at) * sizeof(*kept->items));
        return 1;
}

void
kept_segments_choose(const struct kept_segments *kept, const struct spool_listing *listing, uint64_t limit,
                     uint64_t drained, struct kept_choice *choice)
{
        int64_t now_ms = clock_monotonic_ms(), since_ms = now_ms + 1;

        memset(choice, 0, sizeof(*choice));
        for (size_t i = 0; i < listing->n_segments && listing->segments[i].number < limit; i++) {
                const struct kept_segment *item = get(kept, listing->segments[i].number);

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
