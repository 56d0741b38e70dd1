#ifndef KAFKA_FETCH_AHEAD_H
#define KAFKA_FETCH_AHEAD_H

#include <stddef.h>

#include <librdkafka/rdkafka.h>

#include "config/config.h"

/*
 * How much a consumer fetches ahead of what it has returned, and that it goes on fetching when it has room.
 *
 * librdkafka from 2.2 on looks at a full queue again after fetch.queue.backoff.ms. Before, it does so when
 * its thread for the broker wakes: when a response comes, or after a second (issue 2879). Setting the
 * client's credentials wakes these threads; they are set to what they are.
 */
struct fetch_ahead {
        rd_kafka_t *client; /* NULL: there is nothing to do */
        const char *username, *password;
        size_t n_bytes;    /* taken since the threads were woken */
        size_t wake_bytes; /* how many wake them: a fraction of what fills the queue */
};

/* The value of queued.max.messages.kbytes for a consumer with that configuration. */
const char *fetch_ahead_limit(const struct config *config);

/* The value of fetch.queue.backoff.ms, and its name, or NULL if librdkafka does not have it. */
#define FETCH_AHEAD_BACKOFF_MS "10"
const char *fetch_ahead_backoff(void);

/* client was created with config. Both must live as long as ahead is used. */
void fetch_ahead_init(struct fetch_ahead *ahead, const struct config *config, rd_kafka_t *client);

/* Note messages that were taken from the consumer's queue; to be called before waiting for more. */
void fetch_ahead_took(struct fetch_ahead *ahead, rd_kafka_message_t *const *messages, size_t n);

#endif
