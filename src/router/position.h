#ifndef ROUTER_POSITION_H
#define ROUTER_POSITION_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/consumer.h"
#include "router/partition.h"

enum position_result {
        POSITION_TAKEN,
        POSITION_RETRY,   /* Kafka did not answer */
        POSITION_REFUSED, /* the committed offset makes no sense: a person must decide */
};

/**
 * position_take(config, consumer, assigned, partitions, error):
 * Find out where to read each assigned partition from, and start reading there: after an assignment, and after a
 * transaction that did not commit. The committed offset says from where to decide; the table of earlier ids is kept if
 * it still serves, else it is to be restored by reading back from dedup_window before that. Partitions that are no longer
 * assigned are forgotten. On a result but POSITION_TAKEN error has the reason.
 */
enum position_result position_take(const struct config *config, struct consumer *consumer,
                                   const rd_kafka_topic_partition_list_t *assigned,
                                   struct partition_list *partitions, struct error *error) MUST_CHECK;

/**
 * position_add_offset(offsets, topic, partition):
 * Add what is to be committed for a partition: the offset to go on from, with the timestamp of the record before it as
 * metadata, by which the next router finds where to start reading back. Returns 0, or -1 when memory
 * fails; then the offsets must not be committed.
 */
int position_add_offset(rd_kafka_topic_partition_list_t *offsets, const char *topic,
                        const struct partition *partition) MUST_CHECK;

#endif
