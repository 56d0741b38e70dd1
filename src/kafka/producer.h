#ifndef KAFKA_PRODUCER_H
#define KAFKA_PRODUCER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/statistics.h"
#include "model/record.h"

/*
 * Appends records to the topic `deliveries`, acknowledged by every in-sync replica (acks=all, idempotent). It belongs to
 * one thread, whose event loop it wakes through a descriptor; nothing here blocks but _connect and _free.
 */
struct producer;

/**
 * What became of a record; called once for each that producer_append() took, from producer_serve() or producer_free(),
 * unless producer_free() gives librdkafka up.
 * reason is NULL when every in-sync replica has the record. Otherwise may_be_there says whether it may be there, or come to be.
 */
typedef void producer_report(void *record_arg, const char *reason, int may_be_there, void *arg);

/**
 * producer_new(config, bootstrap, wake_fd, report, arg, error):
 * A byte is written to wake_fd, which must not block, when producer_serve() has something to do. Waits for no broker.
 * Returns NULL with the reason.
 */
struct producer *producer_new(const struct config *config, const char *bootstrap, int wake_fd,
                              producer_report *report, void *arg, struct error *error) MUST_CHECK;

/*
 * Give up what is not acknowledged, report it, and close, within two seconds. Records that librdkafka does not report in the
 * first of them, as while it waits for name servers, are never reported; they may be there, or come to be. NULL is harmless.
 */
void producer_free(struct producer *producer);

/* What it has done and holds is to be told to statistics, with the arg of report, every five seconds from producer_serve(). */
void producer_watch(struct producer *producer,
                    void (*statistics)(const struct statistics_totals *totals, void *arg));

/**
 * producer_append(producer, key, body, len, headers, record_arg, error):
 * Append a record. key is copied. body, which is NULL when len is 0, is taken over for free(), but on failure stays the
 * caller's; headers, which may be NULL, are taken over, on failure too. Returns 0, or -1 with the reason when there is no room or
 * the producer is broken; then nothing is reported.
 */
int producer_append(struct producer *producer, struct span key, void *body, size_t len,
                    rd_kafka_headers_t *headers, void *record_arg, struct error *error) MUST_CHECK;

/**
 * producer_connect(producer, timeout_ms):
 * Ask for the topic's metadata, so that the next append need not wait for them. Blocks for so long at most; may be called
 * from any thread.
 */
void producer_connect(struct producer *producer, int timeout_ms);

/* Report what is there to report. */
void producer_serve(struct producer *producer);

/*
 * Whether it has been given a producer id (KIP-98), without which nothing is sent: brokers put that off while they are
 * starting. Known a quarter of a second late. May be called from any thread.
 */
int producer_has_id(const struct producer *producer);

/* Whether it has failed for good, and must be replaced; then why. */
int producer_is_broken(const struct producer *producer, struct error *error);

/* Whether that was because the account is not permitted to append. */
int producer_is_denied(const struct producer *producer);

/* How many appended records are not reported yet. */
size_t producer_outstanding(const struct producer *producer);

#endif
