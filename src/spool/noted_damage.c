#include "spool/noted_damage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "spool/spool_directory.h"

void
noted_damage_clear(struct noted_damage *noted)
{
        free(noted->segments);
        memset(noted, 0, sizeof(*noted));
}

static struct noted_damage_segment *
find(const struct noted_damage *noted, uint64_t number)
{
        for (size_t i = 0; i < noted->n; i++) {
                if (noted->segments[i].number == number)
                        return &noted->segments[i];
        }
        return NULL;
}

static struct noted_damage_segment *
add(struct noted_damage *noted, uint64_t number)
{
        noted->segments = mem_resize(noted->segments, noted->n + 1, sizeof(*noted->segments));
        noted->segments[noted->n] = (struct noted_damage_segment){.number = number};
        return &noted->segments[noted->n++];
}

/* Whether torn bytes of the segment were synced once. */
static int
was_synced(const struct noted_damage *noted, const struct noted_damage_segment *segment,
           const struct segment_summary *summary)
{
        return segment->was_unreadable || summary->damaged_bytes < segment->damaged_bytes ||
               (noted->writer != NULL && spool_writer_has_sealed(noted->writer, segment->number));
}

void
noted_damage_note(struct noted_damage *noted, uint64_t number, struct segment_summary *summary,
                  struct spool_stats *stats)
{
        struct noted_damage_segment *segment = find(noted, number);
        char name[SPOOL_NAME_SIZE];

        if (segment == NULL && summary->damaged_bytes + summary->torn_bytes + summary->unreadable_bytes == 0)
                return;
        if (segment == NULL)
                segment = add(noted, number);
        if (summary->unreadable_bytes > 0) {
                segment->was_unreadable = 1;
                return;
        }
        if (summary->torn_bytes > 0 && was_synced(noted, segment, summary)) {
                summary->damaged_bytes += summary->torn_bytes;
                summary->torn_bytes = 0;
        }
        (void)spool_directory_name(number, name);
        if (summary->damaged_bytes > segment->damaged_bytes) {
                atomic_fetch_add(&stats->damaged, segment->damaged_bytes == 0);
                atomic_fetch_add(&stats->lost_bytes, summary->damaged_bytes - segment->damaged_bytes);
                segment->damaged_bytes = summary->damaged_bytes;
                log_error("a segment of the spool is damaged: deliveries that were answered 200 may be lost "
                          "segment=%s unreadable_bytes=%" PRIu64 " readable_records=%" PRIu64
                          " remedy=\"see gatepost-spool(5), DAMAGE\"",
                          name, summary->damaged_bytes, summary->n_records);
        }
        if (summary->torn_bytes > 0 && segment->torn_bytes == 0)
                log_notice("a segment of the spool ends in an unfinished write, which was never answered 200 "
                           "segment=%s bytes=%" PRIu64,
                           name, summary->torn_bytes);
        segment->torn_bytes = summary->torn_bytes;
}

int
noted_damage_keeps(const struct noted_damage *noted, const struct segment_summary *summary)
{
        return summary->damaged_bytes > 0 || (noted->writer == NULL && summary->torn_bytes > 0);
}

void
noted_damage_forget(struct noted_damage *noted, uint64_t number)
{
        struct noted_damage_segment *segment = find(noted, number);

        if (segment != NULL)
                *segment = noted->segments[--noted->n];
}
