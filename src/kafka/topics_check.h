#ifndef KAFKA_TOPICS_CHECK_H
#define KAFKA_TOPICS_CHECK_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/topics.h"

/* A problem with a topic. */
struct topic_finding {
        int fatal;        /* delivery cannot be guaranteed: the daemon refuses to start */
        int routing_only; /* does not concern a process that only receives, such as all advice on settings */
        const char *topic;
        char text[700]; /* what is wrong, and the command that fixes it */
};

/**
 * topics_check(config, need, state, found, arg):
 * Compare a topic with the requirements of its use; found is called for each problem.
 */
void topics_check(const struct config *config, const struct topic_need *need, const struct topic_state *state,
                  void (*found)(const struct topic_finding *finding, void *arg), void *arg);

/**
 * topics_check_new(client, before, next, cancelled, error):
 * Check the topics that a configuration names and the previous one did not; Kafka is queried only if there
 * are any. Returns 0 when they are right, or -1 with the reason, also when Kafka does not answer. Blocks for
 * about ten seconds at most; once *cancelled is set, only until the present query is answered.
 */
int topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                     const atomic_int *cancelled, struct error *error) MUST_CHECK;

#endif
