#include "router/recheck.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

#define QUIET_MS 60000

/*
 * An outage has all partitions ask, most of them repeatedly: log the first at level info, and those within a
 * minute at level debug. Only the router's thread calls this.
 */
static enum log_level
choose_level(void)
{
        static int64_t logged_ms = -QUIET_MS;
        int64_t now = clock_monotonic_ms();

        if (now - logged_ms < QUIET_MS)
                return LOG_LEVEL_DEBUG;
        logged_ms = now;
        return LOG_LEVEL_INFO;
}

void
recheck(struct partition *partition, const char *why)
{
        char quoted[LOG_QUOTED_SIZE];

        log_line(choose_level(),
                 "asking for the position again partition=%" PRId32 " offset=%" PRId64 " reason=%s",
                 partition->id, partition->next, log_quote(why, quoted));
        partition_void_position(partition, TROUBLE_NONE, NULL, 0, clock_monotonic_ms());
}

void
recheck_open(struct partition *partition)
{
        partition_forget_open(partition, clock_monotonic_ms());
        recheck(partition, "the leader may have changed or restarted before a commit; restoring the dedup "
                           "table");
}

int
recheck_allows_change(struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        if (partition_allows_change(partition, offset, timestamp_ms))
                return 1;
        recheck(partition, "the leader may have changed or restarted");
        partition_note_change(partition, offset, timestamp_ms);
        return 0;
}

void
recheck_divergence(struct partition *partition, const char *topic)
{
        struct error reason;

        (void)error_set(&reason,
                        "partition %d of %s has another record at offset %" PRId64
                        " than the one that was routed",
                        partition->id, topic, partition->decide_from - 1);
        partition->diverged_at = partition->decide_from;
        partition->diverged_ms = partition->routed_ms;
        partition_void_position(partition, TROUBLE_OTHER_LOG, reason.text, 0, clock_monotonic_ms());
}
