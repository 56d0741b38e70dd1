#include "metrics/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "metrics/metrics_state.h"

static const char *const outcome_names[OUTCOME_N] = {
    [OUTCOME_ACCEPTED] = "accepted",
    [OUTCOME_BAD_REQUEST] = "bad_request",
    [OUTCOME_NOT_FOUND] = "not_found",
    [OUTCOME_METHOD_NOT_ALLOWED] = "method_not_allowed",
    [OUTCOME_PROBE] = "probe",
    [OUTCOME_TOO_LARGE] = "too_large",
    [OUTCOME_MALFORMED] = "malformed",
    [OUTCOME_FORBIDDEN] = "forbidden",
    [OUTCOME_STALE] = "stale",
    [OUTCOME_STALE_GENUINE] = "stale_genuine",
    [OUTCOME_STALE_UNCHECKED] = "stale_unchecked",
    [OUTCOME_FORGED] = "forged",
    [OUTCOME_UNAVAILABLE] = "unavailable",
    [OUTCOME_ERROR] = "error",
    [OUTCOME_THROTTLED] = "throttled",
};

#define US UINT64_C(1000) /* in nanoseconds */
#define MS (1000 * US)
#define S (1000 * MS)

static const struct histogram_scale scales[HISTOGRAM_N] = {
    [HISTOGRAM_ACK] = {S,
                       14,
                       {500 * US, 1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS,
                        500 * MS, 1 * S, 2500 * MS, 5 * S, 10 * S}},
    [HISTOGRAM_VERIFY] = {S,
                          12,
                          {1 * US, 2500, 5 * US, 10 * US, 25 * US, 50 * US, 100 * US, 250 * US, 1 * MS,
                           5 * MS, 25 * MS, 100 * MS}},
    [HISTOGRAM_BATCH_RECORDS] = {1,
                                 14,
                                 {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000}},
    [HISTOGRAM_COMMIT] = {S,
                          14,
                          {1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS,
                           1 * S, 2500 * MS, 5 * S, 10 * S, 30 * S}},
    [HISTOGRAM_DELIVERY] =
        {1000, 15, {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 60000, 600000, 3600000, 86400000}},
    [HISTOGRAM_STALE_AGE] =
        {1, 13, {300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 259200, 604800}},
};

const char *
metrics_outcome_name(enum metrics_outcome outcome)
{
        return outcome_names[outcome];
}

struct metrics *
metrics_new(const struct config *config, const struct health *health, const char *embedded_broker)
{
        struct metrics *metrics = mem_alloc(sizeof(*metrics));

        metrics->config = config;
        metrics->health = health;
        metrics->embedded_broker = embedded_broker;
        metrics->start_s = clock_now_ms() / 1000;
        pthread_mutex_init(&metrics->mutex, NULL);
        recent_init(&metrics->recent_refusals);
        recent_init(&metrics->recent_quarantined);
        for (size_t h = 0; h < HISTOGRAM_N; h++)
                histogram_init(&metrics->histograms[h], &scales[h]);
        (void)metrics_source(metrics, "");
        metrics_apply(metrics, config);
        return metrics;
}

/* Return where the list of events links to those of a source and kind, or where it ends without them. */
static _Atomic(struct metrics_events *) *
find_events(struct metrics *metrics, const struct metrics_source *source, const char *kind)
{
        _Atomic(struct metrics_events *) *at = &metrics->events;
        struct metrics_events *events;

        while ((events = atomic_load(at)) != NULL &&
               (events->source != source || strcmp(events->kind, kind) != 0))
                at = &events->next;
        return at;
}

/* Likewise, for a source. */
static _Atomic(struct metrics_source *) *
find_source(struct metrics *metrics, const char *name)
{
        _Atomic(struct metrics_source *) *at = &metrics->sources;
        struct metrics_source *source;

        while ((source = atomic_load(at)) != NULL && strcmp(source->name, name) != 0)
                at = &source->next;
        return at;
}

static void
add_events(struct metrics *metrics, const struct metrics_source *source, const char *kind)
{
        _Atomic(struct metrics_events *) *at = find_events(metrics, source, kind);
        struct metrics_events *events;

        if (atomic_load(at) != NULL)
                return;
        events = mem_alloc(sizeof(*events));
        events->source = source;
        events->kind = mem_strdup(kind);
        atomic_store(at, events);
}

struct metrics_source *
metrics_source(struct metrics *metrics, const char *name)
{
        _Atomic(struct metrics_source *) *at = find_source(metrics, name);
        struct metrics_source *source = atomic_load(at);

        if (source != NULL)
                return source;
        source = mem_alloc(sizeof(*source));
        source->name = mem_strdup(name);
        atomic_store(at, source);
        return source;
}

/* Add the counters of a configuration's sources and kinds that do not exist yet. */
static void
add_counters(struct metrics *metrics, const struct config *config)
{
        for (size_t s = 0; s < config->n_sources; s++) {
                const struct metrics_source *source = metrics_source(metrics, config->sources[s].name);

                for (size_t i = 0; i < topic_table_size(config->topics); i++)
                        add_events(metrics, source, topic_table_rule(config->topics, i)->pattern);
        }
}

void
metrics_refuse_reload(struct metrics *metrics, int64_t time_s, const char *reason)
{
        metrics->refused_s = time_s;
        (void)error_set(&metrics->refused, "%s", reason);
}

void
metrics_apply(struct metrics *metrics, const struct config *config)
{
        metrics->applied_s = clock_now_ms() / 1000;
        metrics->refused_s = 0;
        add_counters(metrics, config);
        config_free(metrics->newest);
        metrics->newest = config_hold(config);
        if (metrics->config->certificate != NULL && config->certificate != NULL)
                metrics->certificate_end_s = config->certificate->not_after_s;
}

void
metrics_free(struct metrics *metrics)
{
        struct metrics_source *source;
        struct metrics_events *events;

        if (metrics == NULL)
                return;
        while ((events = atomic_load(&metrics->events)) != NULL) {
                atomic_store(&metrics->events, atomic_load(&events->next));
                free(events->kind);
                free(events);
        }
        while ((source = atomic_load(&metrics->sources)) != NULL) {
                atomic_store(&metrics->sources, atomic_load(&source->next));
                free(source->name);
                free(source);
        }
        config_free(metrics->newest);
        free(metrics->partitions);
        free(metrics);
}

static void
add(counter *count, uint64_t n)
{
        (void)atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

void
metrics_set(struct metrics *metrics, enum metrics_value which, uint64_t value)
{
        atomic_store_explicit(&metrics->values[which], value, memory_order_relaxed);
}

void
metrics_count(struct metrics *metrics, enum metrics_value which, uint64_t n)
{
        add(&metrics->values[which], n);
        if (n > 0)
                atomic_store(&metrics->times_s[which], (uint64_t)clock_now_ms() / 1000);
}

uint64_t
metrics_get(const struct metrics *metrics, enum metrics_value which)
{
        return metrics_read(&metrics->values[which]);
}

void
metrics_count_request(struct metrics_source *source, enum metrics_outcome outcome)
{
        add(&source->requests[outcome], 1);
        if (outcome == OUTCOME_ACCEPTED)
                atomic_store_explicit(&source->accepted_s, (uint64_t)clock_now_ms() / 1000,
                                      memory_order_relaxed);
}

static void
count_events(struct metrics *metrics, const struct metrics_source *source, const char *pattern, uint64_t n)
{
        struct metrics_events *events = n == 0 ? NULL : atomic_load(find_events(metrics, source, pattern));

        if (events != NULL)
                add(&events->count, n);
}

void
metrics_count_decisions(struct metrics *metrics, const char *source, const struct topic_table *topics,
                        const struct metrics_decisions *decisions)
{
        struct metrics_source *counters = atomic_load(find_source(metrics, source));

        if (counters == NULL)
                return;
        for (size_t i = 0; i < topic_table_size(topics); i++)
                count_events(metrics, counters, topic_table_rule(topics, i)->pattern, decisions->events[i]);
        add(&counters->duplicates, decisions->duplicates);
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                add(&counters->quarantined[r], decisions->quarantined[r]);
        for (size_t l = 0; l < EVENT_LOOKUP_N; l++) {
                add(&counters->found[l], decisions->found[l]);
                add(&counters->missing[l], decisions->missing[l]);
        }
}

struct recent *
metrics_recent_refusals(struct metrics *metrics)
{
        return &metrics->recent_refusals;
}

struct recent *
metrics_recent_quarantined(struct metrics *metrics)
{
        return &metrics->recent_quarantined;
}

void
metrics_observe(struct metrics *metrics, enum metrics_histogram which, uint64_t value, uint64_t n)
{
        histogram_add(&metrics->histograms[which], value, n);
}

struct connection_stats *
metrics_connections(struct metrics *metrics)
{
        return &metrics->connections;
}

void
metrics_watch_budget(struct metrics *metrics, struct memory_budget *budget)
{
        metrics->budget = budget;
}

void
metrics_watch_spool(struct metrics *metrics, const struct spool_stats *stats)
{
        metrics->spool = stats;
}

/* Return the increase of a client's counter, which restarts from 0 with a new client. */
static uint64_t
growth(uint64_t last, uint64_t now)
{
        return now >= last ? now - last : now;
}

void
metrics_note_client(struct metrics *metrics, enum metrics_client client, struct statistics_totals *last,
                    const struct statistics_totals *now)
{
        struct metrics_clients *all = &metrics->clients[client];

        add(&all->requests, growth(last->requests, now->requests));
        add(&all->errors, growth(last->errors, now->errors));
        add(&all->timeouts, growth(last->timeouts, now->timeouts));
        add(&all->retries, growth(last->retries, now->retries));
        add(&all->queued_records, now->queued_records - last->queued_records); /* modulo 2^64 */
        add(&all->queued_bytes, now->queued_bytes - last->queued_bytes);
        *last = *now;
}

void
metrics_set_partitions(struct metrics *metrics, const struct metrics_partition *partitions, size_t n)
{
        pthread_mutex_lock(&metrics->mutex);
        metrics->partitions = mem_resize(metrics->partitions, n, sizeof(*partitions));
        if (n > 0)
                memcpy(metrics->partitions, partitions, n * sizeof(*partitions));
        metrics->n_partitions = n;
        pthread_mutex_unlock(&metrics->mutex);
}

void
metrics_set_brokers(struct metrics *metrics, const struct brokers *brokers)
{
        metrics->brokers = *brokers;
}
