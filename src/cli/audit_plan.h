#ifndef CLI_AUDIT_PLAN_H
#define CLI_AUDIT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "config/config.h"
#include "kafka/range.h"
#include "model/record.h"

/* Times that are no time. */
#define AUDIT_FROM_BEGINNING RANGE_KEPT_ALL
#define AUDIT_NEVER RANGE_KEPT_NOTHING

/*
 * Largest difference between the clocks of brokers, which stamp deliveries, and routers, which stamp events.
 */
#define AUDIT_CLOCK_SKEW_MS INT64_C(300000)

/*
 * Which records an audit reads and requires. Routers may run during the audit, and retention may have deleted
 * parts of the log. So that neither causes a false alarm, Kafka is asked in this order:
 *
 *   the committed offsets     the results of all deliveries below them must have been published
 *   the ends of the topics    all that was committed before is below them
 *   the ends of `deliveries`  the delivery of every record below the topics' ends is below them
 */
struct audit_plan {
        const struct config *config;
        const char *bootstrap;

        /* The partitions of `deliveries`, indexed by number. */
        struct range *deliveries;
        size_t n_deliveries;
        int64_t since_ms;   /* of --since: nothing is required of older deliveries */
        int64_t *committed; /* -1: no router has committed an offset */
        int64_t *from_ms;   /* older deliveries cannot be judged, or are older than since_ms */
        uint64_t n_deleted; /* offsets that were deleted before a router committed them */
        int64_t slack_ms;   /* largest difference between the signed time and the timestamp of a delivery */

        /* The topics that routers write to. */
        const char **topics;
        size_t n_topics;
        size_t
            *first_range;  /* index of their first partition in published; one more entry holds n_published */
        uint32_t *of_rule; /* index of the topic of each rule of the topic table */
        uint32_t quarantine; /* index of the quarantine topic */

        /* Their partitions. */
        struct range *published;
        uint32_t *topic_of; /* index of the topic of each partition */
        size_t n_published;
        int64_t *kept_ms; /* results of older deliveries may have been deleted */
};

/**
 * audit_plan_make(config, bootstrap, since_ms, plan):
 * Ask Kafka what there is to audit. since_ms may be AUDIT_FROM_BEGINNING. config must outlive the plan.
 * Returns 0, or an exit status after printing the reason; call audit_plan_free() in either case.
 */
int audit_plan_make(const struct config *config, const char *bootstrap, int64_t since_ms,
                    struct audit_plan *plan) MUST_CHECK;
void audit_plan_free(struct audit_plan *plan);

/*
 * Which deliveries and published records to compare. Retention, --since and lagging routers leave records
 * whose counterpart the audit cannot see; comparing these would cause false alarms.
 */
enum audit_use {
        AUDIT_LEAVE_OUT,  /* the record was published too early */
        AUDIT_COUNT_ONLY, /* its delivery was signed too early, so a router published it late */
        AUDIT_COMPARE,
};

/* Return whether a delivery can be judged: its timestamp and its signed time are recent enough. */
int audit_plan_judges(const struct audit_plan *plan, const struct record *delivery);

/* Return whether the result of a delivery, a record with this key in a topic, must have been published. */
int audit_plan_requires(const struct audit_plan *plan, const struct record *delivery, uint32_t topic,
                        struct span key);

/* Return how to use a record that was published to a topic at a time. */
enum audit_use audit_plan_use(const struct audit_plan *plan, const rd_kafka_message_t *message,
                              uint32_t topic, int64_t timestamp_ms);

#endif
