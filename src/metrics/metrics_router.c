#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "metrics/metrics_state.h"

/* What a router reports in /metrics and /status. */

/* Return the number of events of a kind, from these on. */
static uint64_t
count_kind(const struct metrics_events *events, const char *kind)
{
        uint64_t n = 0;

        for (; events != NULL; events = atomic_load(&events->next))
                n += strcmp(events->kind, kind) == 0 ? metrics_read(&events->count) : 0;
        return n;
}

/* Return whether events are the first of their kind. */
static int
is_first_of_kind(const struct metrics *metrics, const struct metrics_events *events)
{
        const struct metrics_events *each = atomic_load(&metrics->events);

        while (strcmp(each->kind, events->kind) != 0)
                each = atomic_load(&each->next);
        return each == events;
}

/* In /status, the events of a kind are those of all sources. */
static void
put_events(const struct metrics *metrics, struct figures *to)
{
        static const struct figure figure = {
            "gatepost_events_total", "counter",
            "Events published, by source and by the kind or pattern that chose the topic.", "events"};
        const struct metrics_events *each = atomic_load(&metrics->events);

        figures_head(to, &figure);
        figures_open(to, figure.member);
        for (; each != NULL; each = atomic_load(&each->next)) {
                char *name = figures_copy(each->kind);

                if (to->text != NULL)
                        figures_sample(to, &figure,
                                       FIGURE_LABELS("source", each->source->name, "kind", each->kind),
                                       metrics_read(&each->count));
                else if (is_first_of_kind(metrics, each))
                        figures_number(to, name, (int64_t)count_kind(each, each->kind));
                free(name);
        }
        figures_close(to);
}

static void
render_lookups(const struct metrics *metrics, struct figures *to)
{
        static const struct figure lookups = {
            "gatepost_event_lookups_total", "counter",
            "Events whose key or subject a JSON pointer has found in the body, or not.", NULL};
        static const char *const options[EVENT_LOOKUP_N] = {
            [EVENT_LOOKUP_KEY] = "key", [EVENT_LOOKUP_SUBJECT] = "subject"};
        const struct metrics_source *each = atomic_load(&metrics->sources);

        figures_head(to, &lookups);
        while ((each = atomic_load(&each->next)) != NULL) {
                for (size_t l = 0; l < EVENT_LOOKUP_N; l++) {
                        figures_sample(to, &lookups,
                                       FIGURE_LABELS("source", each->name, "option", options[l], "result",
                                                     "found"),
                                       metrics_read(&each->found[l]));
                        figures_sample(to, &lookups,
                                       FIGURE_LABELS("source", each->name, "option", options[l], "result",
                                                     "missing"),
                                       metrics_read(&each->missing[l]));
                }
        }
}

/* In /status, the duplicates are those of all sources. */
static void
put_duplicates(const struct metrics *metrics, struct figures *to)
{
        static const struct figure duplicates = {
            "gatepost_duplicates_total", "counter",
            "Duplicate deliveries dropped, by source; empty for a source that is not configured.",
            "duplicates"};
        const struct metrics_source *each = atomic_load(&metrics->sources);
        uint64_t sum = 0;

        figures_head(to, &duplicates);
        for (; each != NULL; each = atomic_load(&each->next)) {
                sum += metrics_read(&each->duplicates);
                if (to->text != NULL)
                        figures_sample(to, &duplicates, FIGURE_LABELS("source", each->name),
                                       metrics_read(&each->duplicates));
        }
        figures_number(to, duplicates.member, (int64_t)sum);
}

/* Likewise, by reason. */
static void
put_quarantined(const struct metrics *metrics, struct figures *to)
{
        static const struct figure quarantined = {
            "gatepost_quarantined_total", "counter",
            "Deliveries quarantined, by reason and by source, as for duplicates.", "quarantined"};
        const struct metrics_source *each = atomic_load(&metrics->sources);
        uint64_t sums[QUARANTINE_N_REASONS] = {0};

        figures_head(to, &quarantined);
        for (; each != NULL; each = atomic_load(&each->next)) {
                for (size_t r = 0; r < QUARANTINE_N_REASONS; r++) {
                        const char *reason = judge_reason_name((enum quarantine_reason)r);

                        sums[r] += metrics_read(&each->quarantined[r]);
                        if (to->text != NULL)
                                figures_sample(to, &quarantined,
                                               FIGURE_LABELS("source", each->name, "reason", reason),
                                               metrics_read(&each->quarantined[r]));
                }
        }
        figures_open(to, quarantined.member);
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                figures_number(to, judge_reason_name((enum quarantine_reason)r), (int64_t)sums[r]);
        figures_close(to);
}

static void
put_recently_quarantined(const struct metrics *metrics, struct figures *to)
{
        struct recent_event events[RECENT_EVENTS];
        size_t n = recent_read(&metrics->recent_quarantined, events);

        figures_open_list(to, "recentlyQuarantined");
        for (size_t i = 0; i < n; i++) {
                figures_open(to, NULL);
                figures_number(to, "timeSeconds", events[i].time_s);
                figures_text(to, "source", events[i].source);
                figures_text(to, "reason", events[i].outcome);
                figures_text(to, "detail", events[i].detail);
                figures_text(to, "deliveryId", events[i].delivery_id);
                figures_number(to, "partition", events[i].partition);
                figures_number(to, "offset", events[i].offset);
                figures_close(to);
        }
        figures_close_list(to);
}

static void
put_transactions(const struct metrics *metrics, struct figures *to)
{
        static const struct figure transactions = {"gatepost_transactions_total", "counter",
                                                   "Transactions, by result.", "transactions"};

        figures_head(to, &transactions);
        figures_open(to, transactions.member);
        figures_sample(to, &transactions, FIGURE_LABELS("result", "committed"),
                       metrics_get(metrics, METRICS_COMMITTED));
        figures_sample(to, &transactions, FIGURE_LABELS("result", "aborted"),
                       metrics_get(metrics, METRICS_ABORTED));
        figures_close(to);
}

/* Copy the partitions, so that nothing is written under their lock. The caller frees them. */
static struct metrics_partition *
copy_partitions(const struct metrics *metrics, size_t *n)
{
        pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&metrics->mutex;
        struct metrics_partition *copy;

        pthread_mutex_lock(mutex);
        *n = metrics->n_partitions;
        copy = mem_alloc((*n + 1) * sizeof(*copy));
        if (*n > 0)
                memcpy(copy, metrics->partitions, *n * sizeof(*copy));
        pthread_mutex_unlock(mutex);
        return copy;
}

static void
render_partitions(const struct metrics_partition *partitions, size_t n, struct figures *to)
{
        static const struct figure
            state = {"gatepost_router_partition_state", "gauge",
                     "1 for the state of each partition assigned to this router or to none.", NULL},
            lag = {"gatepost_router_partition_lag_records", "gauge", "Records not routed yet, by partition.",
                   NULL},
            to_read = {"gatepost_router_partition_restore_records", "gauge",
                       "Records to be read for the dedup table before the partition is routed.", NULL};
        char id[16];

        figures_head(to, &state);
        for (size_t i = 0; i < n; i++) {
                (void)snprintf(id, sizeof(id), "%" PRId32, partitions[i].id);
                figures_sample(to, &state,
                               FIGURE_LABELS("partition", id, "state", partitions[i].state, "cause",
                                             partitions[i].cause),
                               1);
        }
        figures_head(to, &lag);
        for (size_t i = 0; i < n; i++) {
                (void)snprintf(id, sizeof(id), "%" PRId32, partitions[i].id);
                figures_sample(to, &lag, FIGURE_LABELS("partition", id), partitions[i].lag);
        }
        figures_head(to, &to_read);
        for (size_t i = 0; i < n; i++) {
                (void)snprintf(id, sizeof(id), "%" PRId32, partitions[i].id);
                figures_sample(to, &to_read, FIGURE_LABELS("partition", id), partitions[i].to_read);
        }
}

static void
put_partition(const struct metrics_partition *partition, struct figures *to)
{
        figures_open(to, NULL);
        figures_number(to, "partition", partition->id);
        figures_text(to, "state", partition->state);
        figures_text(to, "cause", partition->cause);
        figures_text(to, "reason", partition->reason.text);
        figures_number(to, "lagRecords", (int64_t)partition->lag);
        figures_number(to, "restoreRecords", (int64_t)partition->to_read);
        if (partition->committed < 0)
                figures_text(to, "committedOffset", NULL);
        else
                figures_number(to, "committedOffset", partition->committed);
        figures_close(to);
}

static void
put_partitions(const struct metrics *metrics, struct figures *to)
{
        size_t n;
        struct metrics_partition *partitions = copy_partitions(metrics, &n);

        if (to->text != NULL)
                render_partitions(partitions, n, to);
        figures_open_list(to, "partitions");
        for (size_t i = 0; i < n; i++)
                put_partition(&partitions[i], to);
        figures_close_list(to);
        free(partitions);
}

/* Without `state`, /status has no such object. */
static void
put_state(const struct metrics *metrics, struct figures *to)
{
        if (to->json != NULL && metrics->config->state == NULL)
                return;
        figures_open(to, "state");
        metrics_put_value(metrics, METRICS_STATE_FILES, to);
        metrics_put_value(metrics, METRICS_STATE_BYTES, to);
        metrics_put_value(metrics, METRICS_STATE_ERRORS, to);
        figures_close(to);
}

void
metrics_put_router(const struct metrics *metrics, struct figures *to)
{
        put_events(metrics, to);
        if (to->text != NULL)
                render_lookups(metrics, to);
        put_duplicates(metrics, to);
        put_quarantined(metrics, to);
        put_recently_quarantined(metrics, to);
        metrics_put_value(metrics, METRICS_TESTS, to);
        put_transactions(metrics, to);
        metrics_put_histogram(metrics, HISTOGRAM_BATCH_RECORDS, to);
        metrics_put_histogram(metrics, HISTOGRAM_COMMIT, to);
        metrics_put_histogram(metrics, HISTOGRAM_DELIVERY, to);
        metrics_put_value(metrics, METRICS_LAG, to);
        metrics_put_value(metrics, METRICS_OLDEST_MS, to);
        put_partitions(metrics, to);
        metrics_put_value(metrics, METRICS_DELETED, to);
        metrics_put_value(metrics, METRICS_TRUNCATIONS, to);
        metrics_put_value(metrics, METRICS_PARTITIONS_ADDED, to);
        metrics_put_value(metrics, METRICS_REMEMBERED_IDS, to);
        put_state(metrics, to);
}
