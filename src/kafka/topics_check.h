#ifndef KAFKA_TOPICS_CHECK_H
#define KAFKA_TOPICS_CHECK_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/topics.h"

/* Something about a topic that is not as it should be. */
struct topic_finding {
        int fatal;        /* the promise cannot be kept: the daemon refuses to start */
        int routing_only; /* it does not concern a process that only receives */
        const char *topic;
        char text[384]; /* what is wrong, and the command that mends it */
};

/**
 * topics_check(config, need, state, found, arg):
 * Hold a topic against what its use asks for; found is called for each difference.
 */
void topics_check(const struct config *config, const struct topic_need *need, const struct topic_state *state,
                  void (*found)(const struct topic_finding *finding, void *arg), void *arg);

/**
 * topics_check_new(client, before, next, cancelled, error):
 * Hold the topics that a configuration names, and the one before did not, against what it asks of them; Kafka is asked only
 * when there are some. Returns 0 when they are right, or -1 with the reason, also when Kafka does not answer. Blocks for
 * about ten seconds at most, and for the answers that it waits for already once *cancelled is set.
 */
int topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                     const atomic_int *cancelled, struct error *error) MUST_CHECK;

#endif
