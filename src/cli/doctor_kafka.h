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
 * doctor_transactions_list(offsets, topic, n, error):
 * List what an open transaction hides now in each of n partitions, from its first record on; an empty range
 * where there is none. Returns an array that the caller frees; NULL with the reason.
 */
struct range *doctor_transactions_list(struct offsets *offsets, const char *topic, size_t n,
                                       struct error *error) MUST_CHECK;

/* Empty the ranges whose transaction has ended. Returns the number of the others, or -1 with the reason. */
int doctor_transactions_look(struct offsets *offsets, struct range *open, size_t n,
                             struct error *error) MUST_CHECK;

/* Report those that have stayed open. */
void doctor_transactions_report(struct doctor *doctor, const struct range *open, size_t n);

/* Return why the last call of offsets, which may be NULL, has failed. */
enum range_result doctor_kafka_why(const struct offsets *offsets);

/* Whether there is nothing to connect to: the broker is inside the daemon. Reports that for a step. */
int doctor_kafka_is_embedded(struct doctor *doctor, const char *step);

#endif
