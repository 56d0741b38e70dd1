#ifndef KAFKA_INQUIRY_H
#define KAFKA_INQUIRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/dial.h"
#include "base/error.h"

/*
 * Asks a broker what the account of an open connection is allowed, without any effect (KIP-430): nothing is
 * written, no group is joined and no producer is fenced.
 */

/* Bits of allowed operations. */
enum inquiry_operation {
        INQUIRY_READ = 1 << 3,
        INQUIRY_WRITE = 1 << 4,
        INQUIRY_DESCRIBE = 1 << 8,
        INQUIRY_DESCRIBE_CONFIGS = 1 << 10,
};

#define INQUIRY_CLUSTER_SIZE 64

/* The answer about a topic or a group. */
struct inquiry_answer {
        const char *name;
        int is_known; /* 0: the broker does not say */
        int code;     /* Kafka's error code; 0: none */
        int32_t operations;
};

/* Ask for n topics, by their names. Returns 0, or -1 with the reason when there is no answer. */
int inquiry_topics(struct dial *dial, struct inquiry_answer *topics, size_t n,
                   struct error *error) MUST_CHECK;

enum inquiry_coordinator { INQUIRY_OF_GROUP = 0, INQUIRY_OF_TRANSACTIONS = 1 };

/* A broker that is responsible for a group or a transactional id. */
struct inquiry_broker {
        char host[256];
        char port[16];
};

/**
 * inquiry_coordinator(dial, kind, name, broker, code, error):
 * Find the broker that is responsible. Returns 0, also with an error code of Kafka; -1 with the reason.
 */
int inquiry_coordinator(struct dial *dial, enum inquiry_coordinator kind, const char *name,
                        struct inquiry_broker *broker, int *code, struct error *error) MUST_CHECK;

/* The members of a group that have no group.instance.id, as routers have, and the first of them. */
struct inquiry_strangers {
        int n_members; /* all of the group */
        int n;
        char client_id[100], host[100];
        int code; /* why the members are not known; 0: they are */
};

/* Ask the coordinator for a group; for its members in either protocol (KIP-848). */
int inquiry_group(struct dial *coordinator, struct inquiry_answer *group, struct inquiry_strangers *strangers,
                  struct error *error) MUST_CHECK;

/**
 * inquiry_transactional_id(coordinator, name, code, error):
 * Find out whether the account may write in transactions of this id: ask to abort one of a producer that does
 * not exist. Kafka checks the permission first, and refuses the producer then; it neither ends a transaction
 * nor fences a producer. *code receives Kafka's error.
 */
int inquiry_transactional_id(struct dial *coordinator, const char *name, int *code,
                             struct error *error) MUST_CHECK;

/* Read the id of the broker's cluster, "" if it does not say. Returns 0, or -1 with the reason. */
int inquiry_cluster(struct dial *dial, char id[INQUIRY_CLUSTER_SIZE], struct error *error) MUST_CHECK;

/* Get a producer id, as every idempotent producer does. *code receives Kafka's error. */
int inquiry_producer_id(struct dial *dial, int *code, struct error *error) MUST_CHECK;

#endif
