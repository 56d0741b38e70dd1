#ifndef KAFKA_TRANSACTION_H
#define KAFKA_TRANSACTION_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "model/record.h"

/*
 * A transactional producer: what it produces becomes visible to read_committed consumers together with the offsets that
 * it commits, or not at all (KIP-98, KIP-447). For one thread at a time. After any failure there is one thing to do with
 * it: transaction_free(); the transaction_init() of the next one ends what is open, and fences whatever of the old one is
 * still on its way. Never use one again after an unknown outcome: a commit that was late could then end the next
 * transaction.
 */
struct transaction;

/* A record that Kafka did not accept. */
struct transaction_failure {
        uintptr_t tag; /* as given to transaction_produce() */
        const char *topic;
        const char *reason;
        int is_final; /* it is the record that is refused: no topic setting or broker that comes back makes it acceptable soon */
};

/*
 * transactional.id is `<group>-<instance>`. on_failure may be called, with arg, from transaction_produce(), transaction_commit() and
 * transaction_learn(). Returns NULL with the reason.
 */
struct transaction *transaction_new(const struct config *config, const char *bootstrap,
                                    void (*on_failure)(const struct transaction_failure *failure, void *arg),
                                    void *arg, struct error *error) MUST_CHECK;

/**
 * transaction_know_topics(transaction, config):
 * The topics that it will produce to from now on, at first those of transaction_new(): it keeps in mind where they are.
 */
void transaction_know_topics(struct transaction *transaction, const struct config *config);

/**
 * transaction_init(transaction, timeout_ms, error):
 * Fence every earlier producer of this transactional.id and end what it left open. Returns 0; 1 when it is to be called
 * again, Kafka being away; -1 with the reason when this producer is of no use.
 */
int transaction_init(struct transaction *transaction, int timeout_ms, struct error *error) MUST_CHECK;

/**
 * transaction_settle(transaction):
 * Wait until Kafka is probably done with the last commit, up to 20 ms: a transaction that begins sooner is held up for longer
 * (delay.h). Not worth it where so much waits that this time is needed to add it.
 */
void transaction_settle(struct transaction *transaction);

int transaction_begin(struct transaction *transaction, struct error *error) MUST_CHECK;

/* Whether a record is larger than any broker accepts. */
int transaction_is_too_large(size_t bytes) MUST_CHECK;

/**
 * transaction_produce(transaction, topic, key, value, headers, tag, error):
 * Add a record. key and value are copied; headers become the transaction's, on failure too. tag comes back if the record fails.
 */
int transaction_produce(struct transaction *transaction, const char *topic, struct span key,
                        struct span value, rd_kafka_headers_t *headers, uintptr_t tag,
                        struct error *error) MUST_CHECK;

/**
 * transaction_commit(transaction, group, offsets, error):
 * Commit the records and the offsets in one, for a member of the group as it was when the group's metadata were taken:
 * Kafka refuses when it no longer is. Blocks until the outcome is known, which may take as long as the transaction may live
 * (30 s); every 10 s of that all connections are made anew (rouser.h). Returns 0 when committed. On -1, with the reason, the
 * outcome may be unknown.
 */
int transaction_commit(struct transaction *transaction, const rd_kafka_consumer_group_metadata_t *group,
                       const rd_kafka_topic_partition_list_t *offsets, struct error *error) MUST_CHECK;

/* After a failure: see which records of the transaction were refused, if that is why it failed. Waits for up to 50 ms. */
void transaction_learn(struct transaction *transaction);

/**
 * transaction_is_tainted(transaction):
 * Whether a request of a transaction was sent once more because its answer did not come. The first copy may reach Kafka
 * at any time: a late commit would end whatever transaction of this producer is open then, without its offsets; late
 * offsets would replace newer ones (KIP-890). So free it after its commit, and init another, which fences the copy.
 */
int transaction_is_tainted(struct transaction *transaction) MUST_CHECK;

/*
 * Abort what is open, if that can be done: for the last of a process, so that consumers need not wait for its time-out. Where
 * another one follows, its transaction_init() does so better: it also turns away records that come late.
 */
void transaction_abort(struct transaction *transaction);

/*
 * Whether the brokers are older than Kafka 2.5, which cannot refuse the offsets of a member that has lost its partitions
 * (KIP-447): routers could publish twice. Known once a commit has been tried, which then failed.
 */
int transaction_is_unfenced(struct transaction *transaction) MUST_CHECK;

/* Leaves what is open to the next one. NULL is harmless. Takes some seconds at most. */
void transaction_free(struct transaction *transaction);

#endif
