#ifndef SANDBOX_EVENTS_H
#define SANDBOX_EVENTS_H

#include "sandbox/api.h"
#include "sandbox/delivery_scheduler.h"

/*
 * An event has a kind, such as invoice.accepted. A webhook lists event filters: a kind, `*` for every kind,
 * or `reporting_batch.*` for that family, whose kinds the service's documentation does not list.
 */

/*
 * Return whether the text can be an event kind: 1 to 128 characters of [0-9A-Za-z._-]. It need not be
 * documented.
 */
int events_is_kind(const char *text);

/* Return whether the text is a valid event filter. */
int events_filter_is_known(const char *text);

/* Return the known filter closest to a misspelt one, or NULL. */
const char *events_filter_suggest(const char *text);

int events_filter_matches(const char *filter, const char *kind);

/**
 * events_publish(sandbox, event, deliveries):
 * Schedule a delivery of the event to each webhook that subscribes to it. deliveries is NULL or an open JSON
 * array, to which the ids of webhook and delivery are appended.
 */
void events_publish(struct sandbox *sandbox, const struct outgoing_event *event,
                    struct json_writer *deliveries);

/* Handle POST /v1/sandbox/fire: publish an event of any kind. */
void events_fire(const struct api_call *call);

#endif
