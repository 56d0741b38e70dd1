#ifndef RECEIVER_RECEIVER_H
#define RECEIVER_RECEIVER_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/activation.h"
#include "config/current.h"
#include "kafka/probe.h"
#include "metrics/health.h"
#include "metrics/metrics.h"

/* The half that faces the internet: listening sockets and the lanes that accept from them. */
struct receiver;

/**
 * receiver_new(current, bootstrap, metrics, probe, activation, error):
 * Listen, unless listening sockets were passed on, and start the lanes. bootstrap is NULL for the configured one. What is
 * given outlives it. Returns NULL with the reason.
 */
struct receiver *receiver_new(struct current *current, const char *bootstrap, struct metrics *metrics,
                              const struct probe *probe, const struct activation *activation,
                              struct error *error) MUST_CHECK;

/**
 * receiver_renew(receiver, config, error):
 * Get ready for a configuration that is about to become the newest: new connections have its certificate from now on.
 * Returns 0, or -1 with the reason; then nothing has changed.
 */
int receiver_renew(struct receiver *receiver, const struct config *config, struct error *error) MUST_CHECK;

/* It has become the newest. */
void receiver_renewed(struct receiver *receiver);

/* The probe's state has changed: when Kafka is there, get ready to append; blocks for a moment then. */
void receiver_probe_changed(struct receiver *receiver);

/* For health_add(): appends are possible. */
int receiver_is_ready(void *receiver, char reason[HEALTH_REASON_SIZE]);

/*
 * Whether each lane's loop has turned within limit_ms and every listening socket can still be connected to; else writes which
 * one stands still or was shut down.
 */
int receiver_is_alive(struct receiver *receiver, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

/* Accept no more, and answer what is in flight. Returns at once; again is harmless. */
void receiver_stop(struct receiver *receiver);

/* Whether that is done. */
int receiver_has_stopped(struct receiver *receiver);

/* Say in the log how it stands; its lanes do a moment later. */
void receiver_log_status(const struct receiver *receiver);

/* Stop, wait for that, and release. NULL is harmless. */
void receiver_free(struct receiver *receiver);

#endif
