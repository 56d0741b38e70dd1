#ifndef CLI_DOCTOR_KAFKA_H
#define CLI_DOCTOR_KAFKA_H

#include "cli/doctor.h"
#include "kafka/inquiry.h"
#include "kafka/offsets.h"

/* A broker by its name, as in bootstrap.servers or advertised by itself. */
struct doctor_broker {
        char host[256];
        char port[16];
        int32_t id;                         /* -1: of bootstrap.servers */
        char cluster[INQUIRY_CLUSTER_SIZE]; /* from doctor_broker_check(); "": unknown */
};

/**
 * doctor_broker_check(doctor, broker):
 * Report for one broker, step by step: name resolution, connection, TLS, login. Returns whether all
 * succeeded.
 */
int doctor_broker_check(struct doctor *doctor, struct doctor_broker *broker);

/* Read HOST:PORT, with or without PROTOCOL:// before it. Returns 0 or -1. */
int doctor_broker_parse(const char *text, size_t len, struct doctor_broker *broker) MUST_CHECK;

/* The size of an address for messages, and the address: kafka1:9092, [::1]:9092. */
#define DOCTOR_BROKER_TEXT_SIZE 280
const char *doctor_broker_format(const struct doctor_broker *broker, char text[DOCTOR_BROKER_TEXT_SIZE]);

/*
 * Report why a step could not ask Kafka: what this account may not see, or retention has deleted meanwhile,
 * is not verified; a failure otherwise, since the steps before have reached Kafka.
 */
void doctor_kafka_report(struct doctor *doctor, enum range_result why, const struct error *error);

/**
 * doctor_transactions_look(offsets, topic, n, open, error):
 * Count the partitions, of n, with a transaction that has been open since the first call, at which *open is
 * NULL. *open becomes an array that the caller frees: what the transactions hide in each partition, from
 * their first record on. Returns the number, or -1 with the reason.
 */
int doctor_transactions_look(struct offsets *offsets, const char *topic, size_t n, struct range **open,
                             struct error *error) MUST_CHECK;

/* Report those that have stayed open. */
void doctor_transactions_report(struct doctor *doctor, const struct range *open, size_t n);

/* What the group has committed in each partition of a topic, and the whole log of it. Begin with {0}. */
struct doctor_positions {
        int64_t *committed; /* -1: none */
        struct range *logs;
        size_t n;
};

/* doctor_positions.c: Look at n partitions, now. Returns 0, or -1 with the reason. */
int doctor_positions_look(struct doctor_positions *positions, struct offsets *offsets, const char *topic,
                          size_t n, struct error *error) MUST_CHECK;
void doctor_positions_clear(struct doctor_positions *positions);

/*
 * Whether a router can continue in a partition: its log reaches the committed offset; or it has no committed
 * offset, and its log is complete.
 */
int doctor_positions_fit(const struct doctor_positions *positions, size_t partition);

/* Return the first partition in which none can, or the number of partitions. */
size_t doctor_positions_misfit(const struct doctor_positions *positions);

/* Report that none can. */
void doctor_positions_report(struct doctor *doctor, const struct doctor_positions *positions,
                             size_t partition);

/* Return why the last call of offsets, which may be NULL, has failed. */
enum range_result doctor_kafka_why(const struct offsets *offsets);

/* Whether there is nothing to connect to: the broker is inside the daemon. Reports that for a step. */
int doctor_kafka_is_embedded(struct doctor *doctor, const char *step);

#endif
