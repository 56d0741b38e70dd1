#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "http/server.h"
#include "sandbox/delivery_scheduler.h"
#include "sandbox/invoices.h"
#include "sandbox/keys.h"
#include "sandbox/webhooks.h"

/*
 * A stand-in for the invoicing service, in one thread:
 *
 *   api.c  --> webhooks.c   register endpoints
 *          --> invoices.c   submit invoices, which the tax authority decides after a delay (invoice_rules.c)
 *          --> events.c     publish an event on demand
 *   invoices.c --> events.c --> delivery_scheduler.c --> transport.c   deliver events, signed, with retries
 *   state.c    keeps webhooks, invoices and pending deliveries in a file
 */

/* Options of gatepost-sandbox(1). */
struct sandbox_options {
        struct config_listen listen;
        struct api_keys keys;
        const char *shown_key;  /* printed in the first line */
        const char *service;    /* the word in the names of the delivery headers */
        const char *outbox;     /* directory for mails; NULL: mails are only logged */
        const char *state_file; /* NULL: state is lost at exit */
        const char *ca_file;    /* NULL: the system's certificates */
        uint64_t retry_base_ms;
        int sign_once;     /* sign each delivery once, not each attempt */
        uint64_t delay_ms; /* from submission to the authority's decision */
};

struct sandbox {
        const struct sandbox_options *options;
        struct event_base *base;
        struct event *signals[2];
        struct api_keys keys;
        struct webhooks webhooks;
        struct invoices invoices;
        struct delivery_scheduler *scheduler;
        struct event *saving; /* writes the state file when it fires */
        struct http_server *server;
        int listener;
        int exit_status;
};

/**
 * sandbox_run(options):
 * Listen, print the address on stdout, and serve until SIGTERM or SIGINT. Returns an exit status of
 * sysexits.h.
 */
int sandbox_run(const struct sandbox_options *options) MUST_CHECK;

/* Write the state file now. Returns 0, or -1 after logging; then it is retried later. */
int sandbox_save(struct sandbox *sandbox);

/* Write the state file within a quarter of a second. */
void sandbox_save_soon(struct sandbox *sandbox);

/*
 * The state file: webhooks with their secrets, invoices with their idempotency keys, and pending deliveries,
 * as JSON, mode 0600.
 */

/* Restore the state from the file, if it exists. Returns 0, or -1 with the reason. */
int state_load(struct sandbox *sandbox, const char *path, struct error *error) MUST_CHECK;

/* Replace the file. Returns 0, or -1 with the reason; then the old file is intact. */
int state_save(const struct sandbox *sandbox, const char *path, struct error *error) MUST_CHECK;

#endif
