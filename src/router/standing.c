#include "router/standing.h"

#include <inttypes.h>

#include "base/log.h"
#include "router/incoming.h"

void
standing_log(const struct partition_list *partitions, const struct consumer *consumer, const char *topic)
{
        for (size_t i = 0; i < partitions->n; i++) {
                const struct partition *partition = &partitions->items[i];

                log_notice("status of partition partition=%" PRId32 " committed=%" PRId64 " next=%" PRId64
                           " lag=%" PRId64 " remembered_ids=%zu",
                           partition->id, partition->decide_from, partition->next,
                           consumer == NULL ? 0 : incoming_lag(consumer, topic, partition),
                           partition->dedup == NULL ? 0 : dedup_size(partition->dedup));
        }
}
