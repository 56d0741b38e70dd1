#ifndef KAFKA_TRANSACTION_H
#define KAFKA_TRANSACTION_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/message.h"

/*
 * A transactional producer: its records become visible to read_committed consumers together with the offsets
 * that it commits, or not at all (KIP-98, KIP-447). For one thread at a time. After any failure, call
 * transaction_free(); the transaction_init() of the next producer ends the open transaction, and fences
 * requests of the old one that are still on their way. Never reuse a producer after an unknown outcome: a
 * late commit could then end the next transaction.
 */
struct transaction;

/* A record that Kafka did not accept. */
struct transaction_failure {
        struct message_origin origin; /* as passed to transaction_produce() */
        const char *topic;
        const char *reason; /* with the topic's name */
        int is_final;       /* the record itself is refused, not its topic or a broker */
};

/*
 * The transactional.id is `<group>-<instance>`. on_failure may be called, with arg, from
 * transaction_produce(), transaction_commit() and transaction_poll_reports(). Returns NULL with the reason.
 */
struct transaction *transaction_new(const struct config *config, const char *bootstrap,
                                    void (*on_failure)(const struct transaction_failure *failure, void *arg),
                                    void *arg, struct error *error) MUST_CHECK;

/**
 * transaction_prefetch_topics(transaction, config):
 * Keep the metadata of the topics that the configuration names, to which records will be produced; initially
 * those of transaction_new().
 */
void transaction_prefetch_topics(struct transaction *transaction, const struct config *config);

/**
 * transaction_init(transaction, timeout_ms, error):
 * Fence all earlier producers of this transactional.id and end their open transaction. Returns 0; 1 to call
 * it again, since Kafka is unreachable; -1 with the reason when this producer is useless.
 */
int transaction_init(struct transaction *transaction, int timeout_ms, struct error *error) MUST_CHECK;

/**
 * transaction_wait_for_markers(transaction):
 * Wait until Kafka has probably finished the last commit, up to 20 ms: a transaction that begins sooner is
 * delayed longer (begin_delay.h). Not worthwhile when enough records wait to spend this time on adding them.
 */
void transaction_wait_for_markers(struct transaction *transaction);

int transaction_begin(struct transaction *transaction, struct error *error) MUST_CHECK;

/* Whether a record is larger than any broker accepts. */
int transaction_is_too_large(size_t bytes) MUST_CHECK;

/**
 * transaction_produce(transaction, topic, key, value, headers, origin, error):
 * Add a record, copying key and value: a consumed message keeps a whole response of a broker in memory, so it
 * should not have to last until the commit. Takes ownership of headers, even on failure.
 */
int transaction_produce(struct transaction *transaction, const char *topic, struct span key,
                        struct span value, rd_kafka_headers_t *headers, const struct message_origin *origin,
                        struct error *error) MUST_CHECK;

/**
 * transaction_commit(transaction, group, offsets, error):
 * Commit the records and the offsets atomically, for a member of the group as of when the group metadata was
 * taken: Kafka refuses if it is no longer the same. Blocks until the outcome is known, up to the
 * transaction's lifetime (30 s); every 10 s all connections are reset (commit_watchdog.h). Returns 0 when
 * committed; or -1 with the reason, and the outcome may be unknown.
 */
int transaction_commit(struct transaction *transaction, const rd_kafka_consumer_group_metadata_t *group,
                       const rd_kafka_topic_partition_list_t *offsets, struct error *error) MUST_CHECK;

/* How long the slowest record of the last transaction took to reach Kafka, in milliseconds. */
int64_t transaction_slowest_ms(const struct transaction *transaction) MUST_CHECK;

/* After a failure, wait up to 50 ms for reports of refused records, in case they are the cause. */
void transaction_poll_reports(struct transaction *transaction);

/**
 * transaction_is_tainted(transaction):
 * Whether a request of a transaction was sent again because its response did not come. The first copy may
 * reach Kafka at any time: a late commit would end whichever transaction of this producer is open then,
 * without its offsets; late offsets would replace newer ones (KIP-890). So free the producer after its
 * commit, and init another, which fences the copy.
 */
int transaction_is_tainted(struct transaction *transaction) MUST_CHECK;

/*
 * Abort the open transaction, if possible. For the last producer of a process, so that consumers need not
 * wait for the transaction's timeout. If another producer follows, its transaction_init() does better: it
 * also fences late records.
 */
void transaction_abort(struct transaction *transaction);

/*
 * Whether the brokers are older than Kafka 2.5 and cannot refuse the offsets of a member that has lost its
 * partitions (KIP-447): routers could publish twice. Known after the first commit, which then fails.
 */
int transaction_has_old_brokers(struct transaction *transaction) MUST_CHECK;

/* Leave the open transaction to the next producer. NULL is harmless. Takes some seconds at most. */
void transaction_free(struct transaction *transaction);

#endif
