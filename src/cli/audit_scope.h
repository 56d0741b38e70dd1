#ifndef CLI_AUDIT_SCOPE_H
#define CLI_AUDIT_SCOPE_H

#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "cli/audit_plan.h"
#include "model/record.h"

/* The scope of the audit: deliveries and published records that are recent enough to be compared. */

enum audit_use {
        AUDIT_LEAVE_OUT,  /* the record was published too early */
        AUDIT_COUNT_ONLY, /* its delivery was signed too early, so a router published it late */
        AUDIT_COMPARE,
};

/* Return whether a delivery can be judged: its timestamp and its signed time are recent enough. */
int audit_scope_judges(const struct audit_plan *plan, const struct record *delivery);

/* Return whether the result of a delivery, a record with this key in a topic, must have been published. */
int audit_scope_requires(const struct audit_plan *plan, const struct record *delivery, uint32_t topic,
                         struct span key);

/* Return how to use a record that was published to a topic at a time. */
enum audit_use audit_scope_use(const struct audit_plan *plan, const rd_kafka_message_t *message,
                               uint32_t topic, int64_t timestamp_ms);

/**
 * audit_scope_begin(plan, topic):
 * Return the time from which all of a topic is checked: AUDIT_FROM_BEGINNING, or AUDIT_NEVER when nothing can
 * be checked.
 */
int64_t audit_scope_begin(const struct audit_plan *plan, uint32_t topic);

#endif
