#include "router/topic_watch.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "router/recheck.h"

#define SETTLED_AFTER_MS 5000 /* reading for this long clears a trouble */
#define REJOIN_AFTER_LOOKS 2  /* consecutive looks that found unassigned partitions */
#define REJOIN_PAUSE_MS 30000

/* Clear the trouble of partitions that have been read for a while. */
static void
settle(const struct partition_list *partitions)
{
        int64_t now_ms = clock_monotonic_ms();

        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                if (partition->stage == PARTITION_POSITIONED && partition->trouble != TROUBLE_NONE &&
                    partition->trouble != TROUBLE_NO_LEADER && partition->trouble != TROUBLE_NO_RECORDS &&
                    now_ms - partition->positioned_ms >= SETTLED_AFTER_MS)
                        partition_settle(partition);
        }
}

/* Note missing leaders and records: librdkafka waits for them silently. */
static void
note_logs(const struct partition_list *partitions, const struct topic_view *view)
{
        int64_t now_ms = clock_monotonic_ms();

        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];
                const struct partition_log *log;
                int is_news;

                if ((size_t)partition->id >= view->n_logs)
                        continue;
                log = &view->logs[partition->id];
                is_news = partition_note_leader(partition, log->has_leader, now_ms);
                is_news |= partition_note_log_end(partition, log->end, partitions->emptied_ms, now_ms);
                if (is_news)
                        partition_status_log_waiting(partition);
        }
}

/*
 * Have the last record of quiet partitions read again when the log may have been cut off: it may have grown
 * up to the committed offset again, and no further record would show that.
 */
static void
doubt_quiet(const struct partition_list *partitions, const struct consumer *consumer)
{
        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                if (partition->stage == PARTITION_POSITIONED && partition->next == partition->decide_from &&
                    partition_lag(partition) == 0 &&
                    !consumer_origin_is_current(consumer, &partition->origin))
                        recheck(partition, "the leader may have changed or restarted");
        }
}

static void
note_growth(struct topic_watch *watch, int32_t n)
{
        if (watch->n_partitions >= 0 && n > watch->n_partitions) {
                metrics_count(watch->processor->metrics, METRICS_PARTITIONS_ADDED,
                              (uint64_t)(n - watch->n_partitions));
                log_error("partitions were added to %s: for dedup_window from now on, a repeat of an earlier "
                          "delivery may be published again before=%" PRId32 " now=%" PRId32,
                          watch->config->deliveries_topic, watch->n_partitions, n);
        }
        if (n >= 0)
                watch->n_partitions = n;
}

/*
 * A coordinator assigns a static member that returns in time its former partitions (KIP-345), although
 * partitions were added meanwhile, and no member checks the topic again for minutes.
 */
static void
rejoin(struct topic_watch *watch, struct consumer *consumer, const struct unassigned_partition *first,
       int n_looks)
{
        int64_t now_ms = clock_monotonic_ms();

        if (consumer == NULL || n_looks < REJOIN_AFTER_LOOKS ||
            (watch->rejoined_ms != 0 && now_ms - watch->rejoined_ms < REJOIN_PAUSE_MS))
                return;
        log_warning("partition is assigned to no router; rejoining the group partition=%" PRId32
                    " waiting=%" PRId64,
                    first->partition, first->waiting);
        watch->rejoined_ms = now_ms;
        consumer_rejoin(consumer);
}

void
topic_watch_report(struct topic_watch *watch, struct consumer *consumer, struct partition_status *status)
{
        struct processor *processor = watch->processor;
        struct topic_view view;

        position_finder_view(watch->finder, &view);
        settle(&processor->partitions);
        settle(&processor->followed);
        if (watch->n_looks != view.number) {
                note_logs(&processor->partitions, &view);
                note_logs(&processor->followed, &view);
                if (consumer != NULL)
                        doubt_quiet(&processor->partitions, consumer);
        }
        watch->n_looks = view.number;
        note_growth(watch, view.n_partitions);
        partition_status_read(status, &processor->partitions, &processor->followed, consumer,
                              watch->config->deliveries_topic, view.unassigned, view.n_unassigned,
                              processor->state, processor->metrics);
        if (view.n_unassigned > 0)
                rejoin(watch, consumer, view.unassigned, view.n_looks);
        topic_view_clear(&view);
}
