#ifndef KAFKA_PROBE_H
#define KAFKA_PROBE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/statistics.h"

/*
 * Watches Kafka in a thread of its own: every five seconds it queries the topic `deliveries`; when Kafka
 * first answers, it checks the topics against the configuration. Decides about readiness, and whether to
 * refuse to start. Later it compares the topics every half minute, and logs what has changed.
 */
struct probe;

enum probe_state {
        PROBE_STARTING,  /* Kafka has not answered yet */
        PROBE_REFUSED,   /* a topic is missing, or too misconfigured to guarantee delivery; logged */
        PROBE_REACHABLE, /* the topics are verified, and Kafka answers */
        PROBE_AWAY,      /* the topics are verified, but Kafka did not answer within five seconds */
        PROBE_GONE,      /* the topics were verified, but `deliveries` has been deleted since */
};

/**
 * probe_new(config, bootstrap, changed, arg, error):
 * Start the probe. changed is called from its thread after the state has changed. The embedded broker's
 * topics are not checked. Returns NULL with the reason.
 */
struct probe *probe_new(const struct config *config, const char *bootstrap, void (*changed)(void *arg),
                        void *arg, struct error *error) MUST_CHECK;
void probe_free(struct probe *probe);

/* From any thread. */
enum probe_state probe_state(const struct probe *probe);

/* Return when the last answered query was sent, in monotonic ms; 0: none yet. From any thread. */
int64_t probe_asked_ms(const struct probe *probe);

#define PROBE_REASON_SIZE 384

/*
 * Write why the state is not PROBE_REACHABLE, for readiness, with the last cause of an outage. Return 0 if
 * the state is PROBE_REACHABLE. From any thread.
 */
int probe_reason(struct probe *probe, char reason[PROBE_REASON_SIZE]);

/* Whether the state has ever been PROBE_REACHABLE: the topics are verified. */
int probe_has_verified(const struct probe *probe);

/*
 * Return the number of topics that do not have the required settings, as of half a minute ago at most. The
 * topics that a reload has added do not count. From any thread.
 */
int probe_n_misconfigured(const struct probe *probe);

/*
 * Call topics_check_new() with the probe's client. From any thread. The embedded broker's topics are not
 * checked.
 */
int probe_check_new_topics(struct probe *probe, const struct config *before, const struct config *next,
                           const atomic_int *cancelled, struct error *error) MUST_CHECK;

/* Copy the state of the brokers some seconds ago; none before Kafka has answered. From any thread. */
void probe_brokers(struct probe *probe, struct brokers *brokers);

#endif
