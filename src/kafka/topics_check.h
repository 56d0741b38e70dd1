#ifndef KAFKA_TOPICS_CHECK_H
#define KAFKA_TOPICS_CHECK_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "config/findings.h"
#include "kafka/topic_changes.h"
#include "kafka/topics.h"

/**
 * topics_check(config, need, state, is_routed, findings, changes):
 * Compare a topic with the requirements of its use, and add what is wrong to the findings, with the topic as
 * subject: an error if the guarantee does not hold, else a warning. Without is_routed, add only what concerns
 * a process that only receives. Add the settings that would mend it to the changes, unless they are NULL.
 */
void topics_check(const struct config *config, const struct topic_need *need, const struct topic_state *state,
                  int is_routed, struct findings *findings, struct topic_changes *changes);

/* Log what is wrong with a topic, with the remedy. */
void topics_check_log(const struct finding *finding);

/**
 * topics_check_new(client, before, next, cancelled, error):
 * Check the topics that a configuration names and the previous one did not; Kafka is queried only if there
 * are any. Log what is wrong. Returns 0 when the guarantee holds, or -1 with the reason, also when Kafka does
 * not answer. Blocks for about ten seconds at most; once *cancelled is set, only until the present query is
 * answered.
 */
int topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                     const atomic_int *cancelled, struct error *error) MUST_CHECK;

#endif
