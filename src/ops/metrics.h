#ifndef OPS_METRICS_H
#define OPS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "http/connection_stats.h"
#include "http/memory_budget.h"
#include "kafka/statistics.h"
#include "model/judge.h"
#include "ops/health.h"

/*
 * What is counted, for /metrics. Counters are atomic: any thread counts, any thread reads. Every counter is there from
 * the start, with 0.
 */
struct metrics;

/* What became of a request, as the label `outcome`. */
enum metrics_outcome {
        OUTCOME_ACCEPTED,
        OUTCOME_BAD_REQUEST,
        OUTCOME_NOT_FOUND,
        OUTCOME_METHOD_NOT_ALLOWED,
        OUTCOME_TOO_LARGE,
        OUTCOME_MALFORMED,
        OUTCOME_FORBIDDEN,
        OUTCOME_STALE,           /* and not signed by the service */
        OUTCOME_STALE_GENUINE,   /* signed by the service */
        OUTCOME_STALE_UNCHECKED, /* too many at once to check their signatures */
        OUTCOME_FORGED,
        OUTCOME_THROTTLED,
        OUTCOME_UNAVAILABLE,
        OUTCOME_ERROR,
        OUTCOME_N,
};

const char *metrics_outcome_name(enum metrics_outcome outcome);

/* What is told as a histogram, each with the unit of the values that are added. */
enum metrics_histogram {
        HISTOGRAM_ACK,    /* ns: from a request that is complete to its answer, of accepted deliveries */
        HISTOGRAM_VERIFY, /* ns: the check of a signature */
        HISTOGRAM_BATCH_RECORDS, /* records of a committed transaction */
        HISTOGRAM_COMMIT,        /* ns: the commit of a transaction */
        HISTOGRAM_EVENT_AGE,     /* ms: from the signed timestamp to the commit */
        HISTOGRAM_STALE_AGE, /* s: between the signed timestamp and now, of stale but genuine deliveries */
        HISTOGRAM_N,
};

/* config outlives it. */
struct metrics *metrics_new(const struct config *config);
void metrics_free(struct metrics *metrics);

/* The sources, with their secrets, the topics and the certificate are now those of another configuration. From the thread that renders. */
void metrics_renew(struct metrics *metrics, const struct config *config);

/* A configuration was to be taken over, and was not. From the thread that renders. */
void metrics_renew_failed(struct metrics *metrics);

/* What is counted of the requests to a source; it stays, also when the configuration has the source no more. */
struct metrics_requests;

/* The counters for the source of that name, or for no source: "". From the thread that renders. */
struct metrics_requests *metrics_requests(struct metrics *metrics, const char *source);

/* A request was answered. */
void metrics_count_request(struct metrics_requests *requests, enum metrics_outcome outcome);

/* A committed transaction published an event by this rule; dropped a repeat; quarantined a record. n of each. */
void metrics_count_events(struct metrics *metrics, const struct topic_rule *rule, uint64_t n);
void metrics_count_duplicates(struct metrics *metrics, uint64_t n);
void metrics_count_quarantined(struct metrics *metrics, enum quarantine_reason reason, uint64_t n);

/* A value was met n times. */
void metrics_observe(struct metrics *metrics, enum metrics_histogram which, uint64_t value, uint64_t n);

/* A transaction has ended. */
void metrics_count_transaction(struct metrics *metrics, int committed);

/* Where the receiver's servers count their connections. */
struct connection_stats *metrics_connections(struct metrics *metrics);

/* Report the memory for bodies, until it is called with NULL. From the thread that renders. */
void metrics_watch_budget(struct metrics *metrics, struct memory_budget *budget);

/* The parts that are ready or not, likewise. */
void metrics_watch_health(struct metrics *metrics, const struct health *health);

/* Whether Kafka answers, and the topics are right; at first it is taken that it does not. */
void metrics_set_kafka(struct metrics *metrics, int is_reachable);

/* The brokers that are known. From the thread that renders. */
void metrics_set_brokers(struct metrics *metrics, const struct brokers *brokers);

/* The clients of Kafka whose statistics are told; there may be several of a name, which are added up. */
enum metrics_client { CLIENT_RECEIVER, CLIENT_ROUTER, CLIENT_N };

/**
 * metrics_note_client(metrics, client, last, now):
 * What a client has done and holds. last is what it said before, zeros at first, and becomes now; a client that was made
 * anew begins with zeros, too.
 */
void metrics_note_client(struct metrics *metrics, enum metrics_client client, struct statistics_totals *last,
                         const struct statistics_totals *now);

/* How the router stands: delivery-ids in its tables, records that wait to be routed, for how long at most the oldest has. */
void metrics_set_router(struct metrics *metrics, uint64_t remembered_ids, uint64_t lag, uint64_t oldest_ms);

/* A partition of `deliveries`, for what is shown of it. */
struct metrics_partition {
        int32_t id;
        const char *state; /* a constant: routing, restoring, waiting, refused, unassigned */
        const char *cause; /* a constant: why it is not routed; "": nothing is wrong */
        uint64_t lag;      /* records that wait */
};

/* The partitions that this router has, and those that no router has; n of them, which are copied. From any thread. */
void metrics_set_partitions(struct metrics *metrics, const struct metrics_partition *partitions, size_t n);

/* Records of `deliveries` were deleted before they were routed; a log had lost records that were routed. */
void metrics_count_deleted(struct metrics *metrics, uint64_t n);
void metrics_count_truncation(struct metrics *metrics);

/* How many deliveries were accepted, from all sources; how many records wait to be routed. From the thread that renders. */
uint64_t metrics_accepted(const struct metrics *metrics);
uint64_t metrics_lag(const struct metrics *metrics);

/* Prometheus text format 0.0.4. The caller frees it; *len is its length. NULL when memory fails. */
char *metrics_render(const struct metrics *metrics, size_t *len);

#endif
