#ifndef RECEIVER_RECEIVER_H
#define RECEIVER_RECEIVER_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/activation.h"
#include "config/current.h"
#include "kafka/probe.h"
#include "metrics/health.h"
#include "metrics/metrics.h"

/* The half that faces the internet: listening sockets, and the lanes that accept from them. */
struct receiver;

/**
 * receiver_new(current, bootstrap, metrics, probe, activation, error):
 * Open the listening sockets, unless they were passed on, and start the lanes. bootstrap is NULL for the
 * configured servers. All arguments outlive the receiver. Returns NULL with the reason.
 */
struct receiver *receiver_new(struct current *current, const char *bootstrap, struct metrics *metrics,
                              struct probe *probe, const struct activation *activation,
                              struct error *error) MUST_CHECK;

/**
 * receiver_prepare_reload(receiver, config, error):
 * Get ready for a configuration that is about to become the newest: new connections use its certificate from
 * now on. Returns 0, or -1 with the reason and nothing changed.
 */
int receiver_prepare_reload(struct receiver *receiver, const struct config *config,
                            struct error *error) MUST_CHECK;

/* The configuration has become the newest. */
void receiver_reload(struct receiver *receiver);

/*
 * The probe's state has changed: if Kafka is reachable, get ready to append, which blocks for up to two
 * seconds.
 */
void receiver_probe_changed(struct receiver *receiver);

/* For health_add(): whether deliveries can be appended. */
int receiver_is_ready(void *receiver, char reason[HEALTH_REASON_SIZE]);

/*
 * Whether each lane's event loop has run within limit_ms and no listening socket was shut down; otherwise
 * write which lane or socket has failed.
 */
int receiver_is_alive(struct receiver *receiver, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

/*
 * Accept no more connections, and answer the requests in flight. Returns at once; a second call is harmless.
 */
void receiver_stop(struct receiver *receiver);

/* Whether it has stopped. */
int receiver_has_stopped(struct receiver *receiver);

/* Stop, wait for the lanes, and free. NULL is harmless. */
void receiver_free(struct receiver *receiver);

#endif
