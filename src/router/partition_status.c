#include "router/partition_status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* Return the number of unrouted records, including the open batch, as of the last fetch or look. */
static int64_t
lag_of(struct partition *partition, const struct consumer *consumer, const char *topic)
{
        int64_t low, high;

        if (consumer != NULL && partition->stage == PARTITION_POSITIONED &&
            rd_kafka_get_watermark_offsets(consumer_client(consumer), topic, partition->id, &low, &high) ==
                RD_KAFKA_RESP_ERR_NO_ERROR &&
            high > partition->high)
                partition->high = high;
        return partition_lag(partition);
}

static int
by_id(const void *a, const void *b)
{
        int32_t first = ((const struct metrics_partition *)a)->id,
                second = ((const struct metrics_partition *)b)->id;

        return first < second ? -1 : first > second;
}

/* Note the first reason. */
static void
note_reason(struct partition_status *status, const struct partition *partition, enum partition_state state)
{
        if (state == PARTITION_ROUTING || state == PARTITION_RESTORING)
                return;
        if (status->reason.text[0] == '\0')
                (void)error_set(&status->reason, "partition %" PRId32 " %s: %s", partition->id,
                                partition_state_name(state), partition->reason.text);
}

static void
add_table(struct partition_status *status, const struct dedup *dedup)
{
        const struct dedup_files files = dedup_files(dedup);

        status->remembered_ids += dedup_size(dedup);
        status->state_files += files.n;
        status->state_bytes += files.bytes;
}

static void
read_one(struct partition_status *status, struct partition *partition, int64_t lag,
         struct metrics_partition *shown)
{
        enum partition_state state = partition_state(partition, clock_monotonic_ms());
        uint64_t now_ms = (uint64_t)clock_now_ms();
        int64_t waiting_ms = partition_waiting_ms(partition, lag, (int64_t)now_ms);

        *shown = (struct metrics_partition){
            .id = partition->id,
            .state = partition_state_name(state),
            .cause = partition_trouble_name(partition->trouble),
            .reason = partition->reason,
            .lag = (uint64_t)lag,
            .committed = partition->stage == PARTITION_POSITIONED ? partition->decide_from : -1,
            .to_read = (uint64_t)partition_to_restore(partition),
        };
        status->to_read += shown->to_read;
        status->n++;
        status->n_routing += state == PARTITION_ROUTING;
        status->n_refused += state == PARTITION_REFUSED;
        status->lag += (uint64_t)lag;
        if (waiting_ms > 0 && (status->oldest_ms == 0 || now_ms - (uint64_t)waiting_ms < status->oldest_ms))
                status->oldest_ms = now_ms - (uint64_t)waiting_ms;
        if (partition->dedup != NULL)
                add_table(status, partition->dedup);
        note_reason(status, partition, state);
}

/* Another router reports its lag. */
static void
read_followed(struct partition_status *status, const struct partition *partition,
              struct metrics_partition *shown)
{
        *shown = (struct metrics_partition){
            .id = partition->id,
            .state = partition_state_name(PARTITION_STANDBY),
            .cause = partition_trouble_name(partition->trouble),
            .reason = partition->reason,
            .committed = partition->dedup == NULL ? -1 : partition->decide_from,
            .to_read = (uint64_t)partition_to_restore(partition),
        };
        if (partition->dedup != NULL)
                add_table(status, partition->dedup);
}

static int
is_among(int32_t id, const struct unassigned_partition *unassigned, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (unassigned[i].partition == id)
                        return 1;
        }
        return 0;
}

void
partition_status_read(struct partition_status *status, const struct partition_list *partitions,
                      const struct partition_list *followed, const struct consumer *consumer,
                      const char *topic, const struct unassigned_partition *unassigned, size_t n_unassigned,
                      const struct state *state, struct metrics *metrics)
{
        struct metrics_partition *shown =
            mem_alloc((partitions->n + followed->n + n_unassigned + 1) * sizeof(*shown));
        size_t n = 0;

        memset(status, 0, sizeof(*status));
        for (size_t i = 0; i < partitions->n; i++)
                read_one(status, partitions->items[i], lag_of(partitions->items[i], consumer, topic),
                         &shown[n++]);
        for (size_t i = 0; i < followed->n; i++) {
                if (!is_among(followed->items[i]->id, unassigned, n_unassigned))
                        read_followed(status, followed->items[i], &shown[n++]);
        }
        for (size_t i = 0; i < n_unassigned; i++) {
                shown[n++] = (struct metrics_partition){
                    .id = unassigned[i].partition,
                    .state = partition_state_name(PARTITION_UNASSIGNED),
                    .cause = "unassigned",
                    .lag = (uint64_t)unassigned[i].waiting,
                    .committed = -1,
                };
                status->lag += (uint64_t)unassigned[i].waiting;
                if (status->reason.text[0] == '\0')
                        (void)error_set(&status->reason, "partition %" PRId32 " is assigned to no router",
                                        unassigned[i].partition);
        }
        status->n_unassigned = n_unassigned;
        qsort(shown, n, sizeof(*shown), by_id);
        metrics_set_partitions(metrics, shown, n);
        metrics_set(metrics, METRICS_LAG, status->lag);
        metrics_set(metrics, METRICS_OLDEST_MS, status->oldest_ms);
        metrics_set(metrics, METRICS_REMEMBERED_IDS, status->remembered_ids);
        metrics_set(metrics, METRICS_STATE_FILES, status->state_files);
        metrics_set(metrics, METRICS_STATE_BYTES, status->state_bytes);
        metrics_set(metrics, METRICS_STATE_ERRORS, state == NULL ? 0 : state_failures(state));
        free(shown);
}

void
partition_status_log_waiting(const struct partition *partition)
{
        char quoted[LOG_QUOTED_SIZE];

        log_line(partition->trouble >= TROUBLE_NO_OFFSET ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                 "%s partition=%" PRId32 " cause=%s reason=%s",
                 partition->is_followed ? "a partition of another router cannot be followed now"
                                        : "partition is waiting",
                 partition->id, partition_trouble_name(partition->trouble),
                 log_quote(partition->reason.text, quoted));
}
