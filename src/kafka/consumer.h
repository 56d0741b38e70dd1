#ifndef KAFKA_CONSUMER_H
#define KAFKA_CONSUMER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/statistics.h"

/*
 * A member of the router's consumer group on the topic `deliveries`. Static membership (KIP-345): a member that comes
 * back within the session time-out of 15 s finds its partitions as they were. It commits nothing by itself and takes no
 * position by itself: when it is given partitions, its owner says from which offsets to read. For one thread.
 */
struct consumer;

struct consumer_events {
        /* The member has been given these partitions; the callee sooner or later calls consumer_assign(). */
        void (*on_assigned)(const rd_kafka_topic_partition_list_t *partitions, void *arg);
        /* All its partitions are taken away. */
        void (*on_revoked)(void *arg);
        /* What it has done and holds, every five seconds. May be NULL. */
        void (*on_statistics)(const struct statistics_totals *totals, void *arg);
};

/* Joins the group. The events are called from consumer_poll() and consumer_free(). Returns NULL with the reason. */
struct consumer *consumer_new(const struct config *config, const char *bootstrap,
                              const struct consumer_events *events, void *arg,
                              struct error *error) MUST_CHECK;

/* Leave the partitions and close. NULL is harmless. */
void consumer_free(struct consumer *consumer);

enum consumer_result {
        CONSUMER_MESSAGE,
        CONSUMER_NOTHING, /* for now */
        CONSUMER_END, /* all of a partition has been read: the message has its id and the offset of the end */
        CONSUMER_TROUBLE, /* it tries again by itself, but may not succeed */
        CONSUMER_LOST, /* a partition cannot be read on, or its position is gone: look it up, and assign anew */
        CONSUMER_FENCED, /* another member uses this instance's name */
        CONSUMER_BROKEN, /* failed for good, or may not read */
};

/**
 * consumer_poll(consumer, timeout_ms, message, partition, error):
 * The next record, if there is one within the time, or CONSUMER_END; the caller destroys the message of both. After
 * on_assigned and until consumer_assign() records of earlier positions may still come. error is filled for the last four
 * results; partition, for CONSUMER_LOST.
 */
enum consumer_result consumer_poll(struct consumer *consumer, int timeout_ms, rd_kafka_message_t **message,
                                   int32_t *partition, struct error *error) MUST_CHECK;

/**
 * consumer_assign(consumer, partitions, error):
 * Read these partitions, and no others, from the offsets in the list. Returns 0 or -1 with the reason.
 */
int consumer_assign(struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions,
                    struct error *error) MUST_CHECK;

/* Read one of the partitions that are assigned from another offset. Returns 0 or -1 with the reason. */
int consumer_seek(struct consumer *consumer, const char *topic, int32_t partition, int64_t offset,
                  struct error *error) MUST_CHECK;

/* Have the group assign all partitions anew. */
void consumer_rejoin(struct consumer *consumer);

/*
 * Which log a record was read from. While this stays the same, so does the log: it can be cut off only when another broker
 * becomes the leader, or when the leader starts again. It also changes where the log stays the same: with each leader, and with
 * each new connection. The leader's epoch is left out: it is that under which the record was appended, which differs within one
 * log; and librdkafka from 2.1 on, which tells it, finds out by it itself that a log was cut off.
 */
struct consumer_origin {
        int is_known;
        uint32_t consumer; /* number of the consumer, in this process */
        int32_t broker;
        uint32_t
            connection; /* number of the consumer's connection to that broker when the record was taken, */
        uint32_t
            earliest; /* and of the first over which it may have been fetched: when partitions were assigned */
};

struct consumer_origin consumer_origin(const struct consumer *consumer, const rd_kafka_message_t *message);

/* Whether two records come from the same log as far as is known. An unknown origin equals every other. */
int consumer_origin_is(const struct consumer_origin *origin, const struct consumer_origin *other);

/* Whether there has been one connection only over which the record can have been fetched. */
int consumer_origin_is_certain(const struct consumer_origin *origin);

/* The client, for what Kafka says of offsets. */
rd_kafka_t *consumer_client(const struct consumer *consumer);

#endif
