#ifndef KAFKA_TOPICS_CHECK_H
#define KAFKA_TOPICS_CHECK_H

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

#endif
