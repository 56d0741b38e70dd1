#ifndef RECEIVER_RECEIVER_H
#define RECEIVER_RECEIVER_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/probe.h"
#include "ops/health.h"
#include "ops/metrics.h"

/* The half that faces the internet: listening sockets and the lanes that accept from them. */
struct receiver;

/**
 * receiver_new(config, bootstrap, metrics, probe, error):
 * Listen, and start the lanes. bootstrap is NULL for the configured one. What is given outlives it. Returns NULL with the
 * reason.
 */
struct receiver *receiver_new(const struct config *config, const char *bootstrap, struct metrics *metrics,
                              const struct probe *probe, struct error *error) MUST_CHECK;

/* The probe's state has changed: when Kafka is there, get ready to append; blocks for a moment then. */
void receiver_probe_changed(struct receiver *receiver);

/* For health_add(): appends are possible. */
int receiver_is_ready(void *receiver, char reason[HEALTH_REASON_SIZE]);

/* Accept no more, answer what is in flight, wait for that, and release. NULL is harmless. */
void receiver_free(struct receiver *receiver);

#endif
