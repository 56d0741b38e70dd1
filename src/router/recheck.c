#include "router/recheck.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

void
recheck(struct partition *partition, const char *why)
{
        char quoted[LOG_QUOTED_SIZE];

        log_info("asking for the position again partition=%" PRId32 " offset=%" PRId64 " reason=%s",
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
