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
        CONSUMER_LOST,    /* the position is gone: ask where to go on, and assign anew */
        CONSUMER_FENCED,  /* another member uses this instance's name */
        CONSUMER_BROKEN,  /* failed for good, or may not read */
};

/**
 * consumer_poll(consumer, timeout_ms, message, error):
 * The next record, if there is one within the time; the caller destroys it. After on_assigned and until consumer_assign()
 * records of earlier positions may still come. error is filled for the last three results.
 */
enum consumer_result consumer_poll(struct consumer *consumer, int timeout_ms, rd_kafka_message_t **message,
                                   struct error *error) MUST_CHECK;

/**
 * consumer_assign(consumer, partitions, error):
 * Read these partitions from the offsets that stand in the list. Returns 0 or -1 with the reason.
 */
int consumer_assign(struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions,
                    struct error *error) MUST_CHECK;

/* The client, for what Kafka says of offsets. */
rd_kafka_t *consumer_client(const struct consumer *consumer);

#endif
