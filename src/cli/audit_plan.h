#ifndef CLI_AUDIT_PLAN_H
#define CLI_AUDIT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/config.h"
#include "kafka/range.h"
#include "model/record.h"

#define AUDIT_FROM_BEGINNING RANGE_KEPT_ALL
#define AUDIT_NEVER RANGE_KEPT_NOTHING

/*
 * So much the clocks of brokers and routers may differ: an event's timestamp is its router's, a delivery's its broker's.
 */
#define AUDIT_CLOCK_SKEW_MS INT64_C(300000)

/*
 * What an audit reads, and what it may demand. A router may go on while it runs, and retention has taken away some of
 * the log; so that neither causes a false alarm, three things are asked for in this order:
 *
 *   the committed offsets     what stands below them in `deliveries` must have been published
 *   the ends of the topics    whatever was committed before stands below them
 *   the ends of `deliveries`  whatever stands below the topics' ends comes of a delivery below these
 */
struct audit_plan {
        const struct config *config;
        const char *bootstrap;

        /* The partitions of `deliveries`; an index is the partition's number. */
        struct range *deliveries;
        size_t n_deliveries;
        int64_t since_ms;   /* older deliveries were not asked for */
        int64_t *begin;     /* the first offsets that are still there; a range may begin later */
        int64_t *committed; /* -1: no router has committed there */
        int64_t *from_ms;   /* older deliveries cannot be judged, or were not asked for */
        int64_t slack_ms;   /* the most by which a delivery's signed time and timestamp differ */

        /* The topics that a router writes, */
        const char **topics;
        size_t n_topics;
        size_t *first_range; /* their first among published; n_topics + 1 of them, the last is n_published */
        uint32_t *of_rule;   /* the topic of each rule of the topic table */
        uint32_t quarantine; /* the topic that is the quarantine */

        /* and their partitions. */
        struct range *published;
        uint32_t *topic_of; /* the topic of each */
        size_t n_published;
        int64_t *kept_ms; /* results of older deliveries may have been deleted by now */
};

/**
 * audit_plan_make(config, bootstrap, since_ms, plan):
 * Ask Kafka. Only deliveries from since_ms on, or AUDIT_FROM_BEGINNING, are demanded. config must outlive the plan.
 * Returns 0, or an exit status after saying why; audit_plan_free() in either case.
 */
int audit_plan_make(const struct config *config, const char *bootstrap, int64_t since_ms,
                    struct audit_plan *plan) MUST_CHECK;
void audit_plan_free(struct audit_plan *plan);

/* How many offsets of a partition of `deliveries` were deleted before a router had committed them. */
int64_t audit_plan_deleted(const struct audit_plan *plan, size_t partition);

/* Whether a delivery can be judged: its timestamp is recent enough, and so is its signed time, by audit_plan_use(). */
int audit_plan_judges(const struct audit_plan *plan, const struct record *delivery);

/* Whether what comes of a delivery must be there: a record with this key in a topic. */
int audit_plan_demands(const struct audit_plan *plan, const struct record *delivery, uint32_t topic,
                       struct span key);

enum audit_use {
        AUDIT_LEAVE_OUT,  /* it was published too early */
        AUDIT_COUNT_ONLY, /* its delivery was signed too early, so a router published it late */
        AUDIT_COMPARE,
};

/* Whether a record that was published in a topic at a time is recent enough to be held against the deliveries. */
enum audit_use audit_plan_use(const struct audit_plan *plan, const rd_kafka_message_t *message,
                              uint32_t topic, int64_t timestamp_ms);

/* From when on everything in a topic is checked, AUDIT_FROM_BEGINNING, or AUDIT_NEVER when nothing of it can be. */
int64_t audit_plan_checked_from(const struct audit_plan *plan, uint32_t topic);

/* Says why the audit ends with this exit status, and returns it. */
int audit_plan_refuse(int status, const char *reason);

/* For a reading that did not end as it should: says why, and returns the exit status. */
int audit_plan_failed(enum range_result result, const struct error *error);

#endif
