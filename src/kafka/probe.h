#ifndef KAFKA_PROBE_H
#define KAFKA_PROBE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/statistics.h"

/*
 * Watches Kafka from a thread of its own: every five seconds it asks for `deliveries`, and when Kafka first answers it holds
 * the topics against what the configuration asks of them. For readiness, and for refusing to start.
 */
struct probe;

enum probe_state {
        PROBE_STARTING,  /* Kafka has not answered yet */
        PROBE_REFUSED,   /* a topic is missing or cannot keep the promise; the log has said which */
        PROBE_REACHABLE, /* the topics are right, and Kafka answered lately */
        PROBE_AWAY,      /* the topics were right, but Kafka did not answer within five seconds */
        PROBE_GONE,      /* the topics were right, but `deliveries` has been deleted since */
};

/**
 * probe_new(config, bootstrap, changed, arg, error):
 * Start it. changed is called from the probe's thread after the state has changed. The embedded broker's topics are not
 * checked. Returns NULL with the reason.
 */
struct probe *probe_new(const struct config *config, const char *bootstrap, void (*changed)(void *arg),
                        void *arg, struct error *error) MUST_CHECK;
void probe_free(struct probe *probe);

/* From any thread. */
enum probe_state probe_state(const struct probe *probe);

/* Monotonic time, ms, at which the last question that was answered was asked; 0: none was. From any thread. */
int64_t probe_asked_ms(const struct probe *probe);

/* Why the state is not PROBE_REACHABLE, for readiness; NULL when it is. From any thread. */
const char *probe_reason(const struct probe *probe);

/* The state was PROBE_REACHABLE at some time: the topics have been found right. */
int probe_has_verified(const struct probe *probe);

/* topics_check_new(), with the probe's client. From any thread. The embedded broker's topics are not checked. */
int probe_check_new_topics(struct probe *probe, const struct config *before, const struct config *next,
                           const atomic_int *cancelled, struct error *error) MUST_CHECK;

/* The brokers, as they were some seconds ago; none before Kafka has answered. From any thread. */
void probe_brokers(struct probe *probe, struct brokers *brokers);

#endif
