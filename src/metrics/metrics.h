#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "http/connection_stats.h"
#include "http/memory_budget.h"
#include "kafka/statistics.h"
#include "metrics/health.h"
#include "metrics/recent.h"
#include "metrics/spool_stats.h"
#include "model/judge.h"
#include "model/rules.h"

/*
 * The metrics of the process, for /metrics and /status. Counters are atomic: any thread may count, any thread
 * may read. Every counter exists from the start. Functions for the main thread only say so.
 */
struct metrics;

/* The outcome of a request, as in the label `outcome`. */
enum metrics_outcome {
        OUTCOME_ACCEPTED,
        OUTCOME_BAD_REQUEST,
        OUTCOME_NOT_FOUND,
        OUTCOME_METHOD_NOT_ALLOWED,
        OUTCOME_PROBE, /* of `gatepost doctor`: its GET, and its accepted test deliveries */
        OUTCOME_TOO_LARGE,
        OUTCOME_MALFORMED,
        OUTCOME_FORBIDDEN,
        OUTCOME_STALE,           /* signature wrong */
        OUTCOME_STALE_GENUINE,   /* signature right */
        OUTCOME_STALE_UNCHECKED, /* signature not checked: too many at once, no memory, or Expect */
        OUTCOME_FORGED,
        OUTCOME_THROTTLED,
        OUTCOME_UNAVAILABLE,
        OUTCOME_ERROR,
        OUTCOME_N,
};

const char *metrics_outcome_name(enum metrics_outcome outcome);

/* The histograms, with the units of the values that are added. */
enum metrics_histogram {
        HISTOGRAM_ACK,           /* ns: from a complete request to its answer, of accepted deliveries */
        HISTOGRAM_VERIFY,        /* ns: verification of a signature */
        HISTOGRAM_BATCH_RECORDS, /* records of a committed transaction */
        HISTOGRAM_COMMIT,        /* ns: commit of a transaction */
        HISTOGRAM_DELIVERY,      /* ms: from the reception of a delivery to the commit of its event */
        HISTOGRAM_STALE_AGE,     /* s: age of stale but genuine deliveries */
        HISTOGRAM_N,
};

/**
 * metrics_new(config, health, embedded_broker):
 * Make the metrics of a process. They report the readiness of the parts of health, and the address of the
 * embedded broker, or NULL. The arguments must outlive the metrics.
 */
struct metrics *metrics_new(const struct config *config, const struct health *health,
                            const char *embedded_broker);
void metrics_free(struct metrics *metrics);

/* Apply a configuration: its sources and their secrets, its topics, its certificate. Main thread. */
void metrics_apply(struct metrics *metrics, const struct config *config);

/* Note when a reload was refused, and why; until a configuration is applied. Main thread. */
void metrics_refuse_reload(struct metrics *metrics, int64_t time_s, const char *reason);

/* Counters of one source. They remain when the source is removed from the configuration. */
struct metrics_source;

/* Return the counters of a source, or, for "", of requests and records of no source. Main thread. */
struct metrics_source *metrics_source(struct metrics *metrics, const char *name);

/* Count a request that was answered. */
void metrics_count_request(struct metrics_source *source, enum metrics_outcome outcome);

/* How many records of one source were decided in which way. */
struct metrics_decisions {
        uint64_t *events; /* published, for each rule of the topic table */
        uint64_t duplicates;
        uint64_t quarantined[QUARANTINE_N_REASONS];
        uint64_t found[EVENT_LOOKUP_N],
            missing[EVENT_LOOKUP_N]; /* of the events, by pointers of the source */
};

/*
 * Count the decisions of a committed transaction on the records of a source; "": of no source that is
 * configured. The source and the topics are of a configuration that was applied.
 */
void metrics_count_decisions(struct metrics *metrics, const char *source, const struct topic_table *topics,
                             const struct metrics_decisions *decisions);

/* Figures that have one value. metrics_values.c has the name of each in both documents. */
enum metrics_value {
        METRICS_KAFKA_REACHABLE, /* 1: Kafka answers and the topics are right */
        METRICS_MISCONFIGURED,   /* topics */
        METRICS_TESTS,           /* test deliveries that committed transactions dropped */
        METRICS_COMMITTED,       /* transactions */
        METRICS_ABORTED,         /* likewise */
        METRICS_LAG,
        METRICS_OLDEST_MS, /* since when a record in the lag can have waited, since the epoch; 0: none does */
        METRICS_REMEMBERED_IDS, /* in the dedup tables */
        METRICS_STATE_FILES,    /* of the dedup tables, with [router] state, like the next two */
        METRICS_STATE_BYTES,
        METRICS_STATE_ERRORS,
        METRICS_DELETED,          /* records of `deliveries` that were deleted before they were routed */
        METRICS_TRUNCATIONS,      /* logs that lost routed records */
        METRICS_PARTITIONS_ADDED, /* to `deliveries` */
        METRICS_N_VALUES,
};

void metrics_set(struct metrics *metrics, enum metrics_value which, uint64_t value);

/* Add to a value, and note the time. */
void metrics_count(struct metrics *metrics, enum metrics_value which, uint64_t n);

uint64_t metrics_get(const struct metrics *metrics, enum metrics_value which);

/* Return the lists of the last refused requests and of the last quarantined records. */
struct recent *metrics_recent_refusals(struct metrics *metrics);
struct recent *metrics_recent_quarantined(struct metrics *metrics);

/* Add a value n times to a histogram. */
void metrics_observe(struct metrics *metrics, enum metrics_histogram which, uint64_t value, uint64_t n);

/* Return the counters that the receiver's servers count connections in. */
struct connection_stats *metrics_connections(struct metrics *metrics);

/* Report the use of this memory budget; NULL: none. Main thread. */
void metrics_watch_budget(struct metrics *metrics, struct memory_budget *budget);

/* Report this spool; NULL: none. Main thread. */
void metrics_watch_spool(struct metrics *metrics, const struct spool_stats *stats);

/* Set the known brokers. Main thread. */
void metrics_set_brokers(struct metrics *metrics, const struct brokers *brokers);

/* The role of a Kafka client. A role may have several clients; their statistics are added up. */
enum metrics_client { CLIENT_RECEIVER, CLIENT_ROUTER, CLIENT_N };

/**
 * metrics_note_client(metrics, client, last, now):
 * Add a client's statistics. last holds what the client reported before, zeros at first and for a new client,
 * and is set to now.
 */
void metrics_note_client(struct metrics *metrics, enum metrics_client client, struct statistics_totals *last,
                         const struct statistics_totals *now);

/* A partition of `deliveries`. state and cause are constants. */
struct metrics_partition {
        int32_t id;
        const char *state;   /* routing, restoring, waiting, refused or unassigned */
        const char *cause;   /* why it is not routed; "" while it is */
        struct error reason; /* likewise, in words */
        uint64_t lag;
        int64_t committed; /* records below this offset have been routed; -1: unknown */
        uint64_t to_read;  /* records to be read for the dedup table before it is routed */
};

/* Set the n partitions that are assigned to this router or to no router; they are copied. */
void metrics_set_partitions(struct metrics *metrics, const struct metrics_partition *partitions, size_t n);

#endif
