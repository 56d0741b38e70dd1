#ifndef METRICS_METRICS_STATE_H
#define METRICS_METRICS_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "metrics/histogram.h"
#include "metrics/metrics.h"

/* Written by any thread, read by any; nothing else is ordered by it. */
typedef _Atomic uint64_t counter;

struct metrics_requests {
        struct metrics_requests *next;
        char *source;
        counter counts[OUTCOME_N];
};

/* Of a kind, or pattern, that has or had a topic. */
struct metrics_events {
        _Atomic(struct metrics_events *) next; /* others than the thread that renders follow it */
        char *kind;
        counter count;
};

/* What clients of one name have done, and hold. */
struct metrics_clients {
        counter requests;
        counter errors;
        counter timeouts;
        counter retries;
        counter queued_records;
        counter queued_bytes;
};

/* What is behind struct metrics; for metrics.c, which counts, and metrics_render.c, which tells. */
struct metrics {
        const struct config *config;
        const struct config *newest;       /* held; for sources */
        int64_t certificate_end_s;         /* 0: there is none */
        struct metrics_requests *requests; /* a list; the first is for no source */
        _Atomic(struct metrics_events *) events;
        counter duplicates;
        counter quarantined[QUARANTINE_N_REASONS];
        counter transactions[2]; /* aborted, committed */
        struct histogram histograms[HISTOGRAM_N];
        counter remembered_ids;
        counter lag;
        counter oldest_ms;
        counter deleted;
        counter truncations;
        pthread_mutex_t mutex; /* over partitions */
        struct metrics_partition *partitions;
        size_t n_partitions;
        counter kafka_reachable;
        struct connection_stats connections;
        struct memory_budget *budget; /* NULL: there is none */
        const struct health *health;  /* likewise */
        struct brokers brokers;
        struct metrics_clients clients[CLIENT_N];
        int64_t start_s;
        int64_t renewed_s; /* when a configuration was taken over last */
        int was_renewed;   /* at the last attempt */
};

#endif
