#ifndef KAFKA_PRODUCER_H
#define KAFKA_PRODUCER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/statistics.h"
#include "model/record.h"

/*
 * Appends records to the topic `deliveries`, acknowledged by every in-sync replica (acks=all, idempotent). It
 * belongs to one thread, whose event loop it wakes through a descriptor; only producer_connect() and
 * producer_free() block.
 */
struct producer;

/* What became of a record. */
struct producer_outcome {
        const char *failure; /* NULL: every in-sync replica has it; else why not, a constant */
        int may_be_there;    /* after a failure: it may be in Kafka nevertheless, now or later */
        int is_final;        /* after a failure: another attempt would fail as well, as for one too large */
};

/*
 * Report a record; called once for each record that producer_append() accepted, from producer_serve() or
 * producer_free(), unless producer_free() has to abandon librdkafka.
 */
typedef void producer_report(void *record_arg, const struct producer_outcome *outcome, void *arg);

/* A record to be appended. */
struct producer_record {
        struct span key; /* copied */
        void *body;      /* allocated by malloc(); may be NULL if body_len is 0 */
        size_t body_len;
        int keeps_body;              /* the caller keeps the body, unchanged until the report */
        rd_kafka_headers_t *headers; /* may be NULL */
        void *arg;                   /* for the report */
        int is_final;                /* set when it is not accepted: another attempt would fail as well */
};

/* How records are collected into requests. A configured linger.ms prevails. */
enum producer_batching {
        PRODUCER_PROMPT, /* after half a millisecond, for records that somebody waits for */
        PRODUCER_BULK,   /* after 20 ms or when a request is full: three times the rate */
        PRODUCER_SINGLE, /* each alone, as Kafka refuses batches as a whole */
};

struct producer_manner {
        enum producer_batching batching;
        unsigned patience; /* a record fails after so many times ack_timeout, above 1 after at most 30 s */
};

/**
 * producer_new(config, bootstrap, manner, wake_fd, report, arg, error):
 * A byte is written to wake_fd, which must not block, when producer_serve() has something to do.
 * Does not wait for brokers. Returns NULL with the reason.
 */
struct producer *producer_new(const struct config *config, const char *bootstrap,
                              struct producer_manner manner, int wake_fd, producer_report *report, void *arg,
                              struct error *error) MUST_CHECK;

/*
 * Give up unacknowledged records, report them, and close, within two seconds. Records that librdkafka does
 * not report within the first second, as while it waits for name servers, are never reported; they may be in
 * Kafka, now or later. NULL is harmless.
 */
void producer_free(struct producer *producer);

/* Call statistics, with the arg of report, four times a second from producer_serve(). */
void producer_watch(struct producer *producer,
                    void (*statistics)(const struct statistics_totals *totals, void *arg));

/**
 * producer_append(producer, record, error):
 * Append a record. Takes ownership of its body, unless the caller keeps it, except on failure; and of its
 * headers, even on failure. Returns 0; or -1 with the reason when there is no room, the record is too large,
 * or the producer is broken, and then reports nothing.
 */
int producer_append(struct producer *producer, struct producer_record *record,
                    struct error *error) MUST_CHECK;

/* Return how long a record waits at most until it is appended or fails, whatever the producer's patience. */
uint64_t producer_longest_wait_ms(const struct config *config);

/**
 * producer_connect(producer, timeout_ms):
 * Fetch the topic's metadata, so that the next append need not wait for them. Blocks for up to timeout_ms.
 * From any thread.
 */
void producer_connect(struct producer *producer, int timeout_ms);

/* Deliver pending reports. */
void producer_serve(struct producer *producer);

/*
 * Whether it has a producer id (KIP-98), without which nothing is sent: brokers assign none while they are
 * starting. From any thread. Up to a quarter of a second late, which is the interval of the statistics:
 * each costs a millisecond of a processor, but librdkafka 2.0.2 also asks for the id no sooner than its
 * main thread awakes.
 */
int producer_has_id(const struct producer *producer);

/* Whether it has failed for good and must be replaced; error says why. */
int producer_is_broken(const struct producer *producer, struct error *error);

#endif
