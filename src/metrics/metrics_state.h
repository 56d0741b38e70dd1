#ifndef METRICS_METRICS_STATE_H
#define METRICS_METRICS_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "metrics/figures.h"
#include "metrics/histogram.h"
#include "metrics/metrics.h"

/* The inside of struct metrics, for metrics.c, which counts, and for the files that write the documents. */

/* Written and read by any thread; orders nothing else. */
typedef _Atomic uint64_t counter;

/* The lists below grow at a reload, in the main thread, while other threads read them. */
struct metrics_source {
        _Atomic(struct metrics_source *) next;
        char *name;
        counter requests[OUTCOME_N];
        counter accepted_s; /* when the last delivery was accepted, since the epoch; 0: none was */
        counter duplicates;
        counter quarantined[QUARANTINE_N_REASONS];
        counter found[EVENT_LOOKUP_N], missing[EVENT_LOOKUP_N];
};

/* Events of one source and kind, or pattern, that has or had a topic. */
struct metrics_events {
        _Atomic(struct metrics_events *) next;
        const struct metrics_source *source;
        char *kind;
        counter count;
};

/* Sums over the Kafka clients of one role. */
struct metrics_clients {
        counter requests;
        counter errors;
        counter timeouts;
        counter retries;
        counter queued_records;
        counter queued_bytes;
};

struct metrics {
        const struct config *config;              /* the first configuration */
        const struct config *newest;              /* held; for its sources */
        int64_t certificate_end_s;                /* 0: no certificate */
        _Atomic(struct metrics_source *) sources; /* the first is for no source */
        _Atomic(struct metrics_events *) events;
        counter values[METRICS_N_VALUES];
        counter times_s[METRICS_N_VALUES]; /* of the last metrics_count(), since the epoch; 0: never */
        struct recent recent_refusals;
        struct recent recent_quarantined;
        struct histogram histograms[HISTOGRAM_N];
        pthread_mutex_t mutex; /* protects the partitions */
        struct metrics_partition *partitions;
        size_t n_partitions;
        struct connection_stats connections;
        struct memory_budget *budget;    /* NULL: no receiver runs */
        const struct spool_stats *spool; /* NULL: none */
        const struct health *health;
        const char *embedded_broker; /* address; NULL: there is none */
        struct brokers brokers;
        struct metrics_clients clients[CLIENT_N];
        int64_t start_s;
        int64_t applied_s;    /* when a configuration was last applied */
        int64_t refused_s;    /* when the last reload was refused, since the epoch; 0: it was not */
        struct error refused; /* why */
};

static inline uint64_t
metrics_read(const counter *count)
{
        return atomic_load_explicit(count, memory_order_relaxed);
}

/* Write a figure that has one value, or a histogram. */
void metrics_put_value(const struct metrics *metrics, enum metrics_value which, struct figures *to);
void metrics_put_histogram(const struct metrics *metrics, enum metrics_histogram which, struct figures *to);

/* Write a part of a document. */
void metrics_put_receiver(const struct metrics *metrics, struct figures *to);
void metrics_put_router(const struct metrics *metrics, struct figures *to);
void metrics_put_spool(const struct spool_stats *stats, struct figures *to);

#endif
