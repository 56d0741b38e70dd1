#ifndef METRICS_METRICS_STATE_H
#define METRICS_METRICS_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "metrics/histogram.h"
#include "metrics/metrics.h"

/*
 * The inside of struct metrics, for metrics.c, which counts, and for metrics_render.c and metrics_status.c,
 * which read.
 */

/* Written and read by any thread; orders nothing else. */
typedef _Atomic uint64_t counter;

/*
 * Readings of the histograms are kept for about METRICS_WINDOW_SLOTS * METRICS_WINDOW_STEP_MS: half a minute.
 */
#define METRICS_WINDOW_SLOTS 16
#define METRICS_WINDOW_STEP_MS 2000

/* The lists below grow at a reload, in the main thread, while other threads read them. */
struct metrics_source {
        _Atomic(struct metrics_source *) next;
        char *name;
        counter requests[OUTCOME_N];
        counter accepted_s; /* when the last delivery was accepted, since the epoch; 0: none was */
        counter duplicates;
        counter quarantined[QUARANTINE_N_REASONS];
        counter found[EVENT_LOOKUP_N], missing[EVENT_LOOKUP_N];
        /* The same when the newest configuration was applied; for the main thread. */
        uint64_t found_before[EVENT_LOOKUP_N], missing_before[EVENT_LOOKUP_N];
};

/* Events of a kind that belong to one source. */
struct metrics_events {
        _Atomic(struct metrics_events *) next;
        const struct metrics_source *source;
        counter count;
};

/* A kind, or pattern, that has or had a topic. */
struct metrics_kind {
        _Atomic(struct metrics_kind *) next;
        char *name;
        _Atomic(struct metrics_events *) events; /* of each source that is or was configured with it */
};

/* A listening socket. */
struct metrics_listener {
        struct metrics_listener *next;
        const char *purpose; /* a constant */
        char *address;
        const char *opened_by; /* a constant: daemon or manager */
        int has_tls;
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

/* How often something was lost, and when last, in seconds since the epoch; 0: never. */
struct metrics_loss {
        counter count;
        counter time_s;
};

/* The last proxy of a delivery that was no trusted_proxy. */
struct metrics_proxy {
        struct address address;
        int64_t time_s; /* of its last delivery, since the epoch; 0: there was none */
};

/* The last readings of all histograms, as a ring. For the main thread. */
struct metrics_window {
        struct histogram_figures slots[METRICS_WINDOW_SLOTS][HISTOGRAM_N];
        size_t next;
        int64_t taken_ms; /* monotonic; of the last reading */
};

struct metrics {
        const struct config *config; /* the first configuration */
        const struct config *newest; /* held; for its sources */
        int64_t certificate_end_s;   /* 0: no certificate */
        struct metrics_listener *listeners;
        _Atomic(struct metrics_source *) sources; /* the first is for no source */
        _Atomic(struct metrics_kind *) kinds;
        counter tests;
        counter transactions[2]; /* aborted, committed */
        struct recent recent_refusals;
        struct recent recent_quarantined;
        struct histogram histograms[HISTOGRAM_N];
        struct metrics_window window;
        counter remembered_ids;
        counter state_files;
        counter state_bytes;
        counter state_errors;
        counter lag;
        counter oldest_ms;           /* since the epoch; 0: no record waits */
        struct metrics_loss deleted; /* records, before they were routed */
        struct metrics_loss truncations;
        struct metrics_loss added; /* partitions */
        pthread_mutex_t mutex;     /* protects the partitions and the proxy */
        struct metrics_proxy untrusted_proxy;
        struct metrics_partition *partitions;
        size_t n_partitions;
        counter kafka_reachable;
        counter misconfigured; /* topics */
        struct connection_stats connections;
        struct memory_budget *budget;    /* NULL: no receiver runs */
        const struct spool_stats *spool; /* NULL: none */
        const struct health *health;     /* NULL: not known yet */
        const char *embedded_broker;     /* address; NULL: there is none */
        struct brokers brokers;
        struct metrics_clients clients[CLIENT_N];
        int64_t start_s;
        int64_t applied_s;                    /* when a configuration was last applied */
        struct refused_reload refused_reload; /* the last reload, if it was refused */
};

static inline uint64_t
metrics_get(const counter *count)
{
        return atomic_load_explicit(count, memory_order_relaxed);
}

/* Return the option with the pointer of a lookup: key or subject. */
const char *metrics_lookup_name(size_t lookup);

/* Return the number of events of a kind from all sources. */
uint64_t metrics_events_of(const struct metrics_kind *kind);

/* Return the reading of a histogram from half a minute ago; zeros when the process is younger. */
const struct histogram_figures *metrics_window_start(const struct metrics *metrics,
                                                     enum metrics_histogram which);

/* Return the label of a role's Kafka clients, or NULL when this process does not have the role. */
const char *metrics_client_name(const struct metrics *metrics, enum metrics_client client);

/* Write the metrics of the spool, if there is one; of the router's partitions. */
void metrics_spool_render(const struct metrics *metrics, FILE *out);
void metrics_router_render(const struct metrics *metrics, FILE *out);

/* A version, by the name of its label in gatepost_build_info; the first is that of this program. */
struct metrics_version {
        const char *name;
        const char *text;
};

#define METRICS_N_VERSIONS 4
struct metrics_version metrics_version(size_t i);

#endif
