#ifndef KAFKA_CONSUMER_H
#define KAFKA_CONSUMER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/consumer_origin.h"
#include "kafka/statistics.h"

/*
 * A member of the router's consumer group on the topic `deliveries`. Static membership (KIP-345): a member
 * that returns within the session timeout of 15 s keeps its partitions. It neither commits nor chooses a
 * position by itself: when partitions are assigned, its owner says from which offsets to read. For one
 * thread.
 */
struct consumer;

struct consumer_events {
        /* These partitions were assigned; the callee must eventually call consumer_assign(). */
        void (*on_assigned)(const rd_kafka_topic_partition_list_t *partitions, void *arg);
        /* All its partitions were revoked. */
        void (*on_revoked)(void *arg);
        /* Report totals every five seconds. May be NULL. */
        void (*on_statistics)(const struct statistics_totals *totals, void *arg);
};

/*
 * Join the group. The events are called from consumer_poll() and consumer_free(). Without events the consumer
 * stays outside the group, and reads what it is told to by consumer_assign(). Returns NULL with the reason.
 */
struct consumer *consumer_new(const struct config *config, const char *bootstrap,
                              const struct consumer_events *events, void *arg,
                              struct error *error) MUST_CHECK;

/* Give up the partitions, and close. NULL is harmless. */
void consumer_free(struct consumer *consumer);

enum consumer_result {
        CONSUMER_MESSAGE,
        CONSUMER_NOTHING, /* no record now */
        CONSUMER_END,     /* end of a partition: the message has its id and the end offset */
        CONSUMER_TROUBLE, /* it retries by itself, but may not succeed */
        CONSUMER_LOST, /* reading a partition failed, or its position is gone: look it up, and assign again */
        CONSUMER_FENCED, /* another member uses this instance's name */
        CONSUMER_BROKEN, /* failed for good, or lacks a permission */
};

/**
 * consumer_poll(consumer, timeout_ms, message, partition, error):
 * Return the next record, if there is one within the time, or CONSUMER_END; the caller destroys the message
 * of both. After on_assigned and until consumer_assign(), records of earlier positions may still come. error
 * is set for the last four results; *partition, for CONSUMER_LOST.
 */
enum consumer_result consumer_poll(struct consumer *consumer, int timeout_ms, rd_kafka_message_t **message,
                                   int32_t *partition, struct error *error) MUST_CHECK;

/* Whether records wait that were polled with the last one: then consumer_poll() returns the next at once. */
int consumer_has_polled(const struct consumer *consumer) MUST_CHECK;

/**
 * consumer_assign(consumer, partitions, error):
 * Read these partitions only, from the offsets in the list. Returns 0, or -1 with the reason.
 */
int consumer_assign(struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions,
                    struct error *error) MUST_CHECK;

/* Read an assigned partition from another offset. Returns 0, or -1 with the reason. */
int consumer_seek(struct consumer *consumer, const char *topic, int32_t partition, int64_t offset,
                  struct error *error) MUST_CHECK;

/* Make the group reassign all partitions. */
void consumer_rejoin(struct consumer *consumer);

/* Return where the record, which was polled just now, comes from. */
struct consumer_origin consumer_origin(const struct consumer *consumer, const rd_kafka_message_t *message);

/* Whether a record that came now from that broker would have this origin. An unknown origin is current. */
int consumer_origin_is_current(const struct consumer *consumer, const struct consumer_origin *origin);

/* Return the client, for queries about offsets. */
rd_kafka_t *consumer_client(const struct consumer *consumer);

#endif
