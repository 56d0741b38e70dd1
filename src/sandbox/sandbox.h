#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "http/server.h"
#include "sandbox/courier.h"
#include "sandbox/invoices.h"
#include "sandbox/keys.h"
#include "sandbox/subscriptions.h"

/* What the arguments of gatepost-sandbox(1) say. */
struct sandbox_options {
        struct config_listen listen;
        struct api_keys keys;
        const char *shown_key;  /* what the first line says: a key to use */
        const char *service;    /* the word in the names of the delivery headers */
        const char *outbox;     /* NULL: mails are only logged */
        const char *state_file; /* NULL: nothing is kept */
        const char *ca_file;    /* NULL: the system's certificates */
        uint64_t retry_base_ms;
        int sign_once;     /* deliveries, not each attempt */
        uint64_t delay_ms; /* until the authority has decided */
};

/* The invoicing service, as far as it is played. One thread. */
struct sandbox {
        const struct sandbox_options *options;
        struct event_base *base;
        struct event *signals[2];
        struct api_keys keys;
        struct subscriptions subscriptions;
        struct invoices invoices;
        struct courier *courier;
        struct event *saving; /* the state file is to be written when it fires */
        struct http_server *server;
        int listener;
        int exit_status;
};

/**
 * sandbox_run(options):
 * Listen, say so on stdout, and work until SIGTERM or SIGINT. Returns an exit status of sysexits.h.
 */
int sandbox_run(const struct sandbox_options *options) MUST_CHECK;

/* Something that the state file holds has changed: write it now, or within a quarter of a second. Returns 0, or -1 after logging. */
int sandbox_save(struct sandbox *sandbox);
void sandbox_save_soon(struct sandbox *sandbox);

#endif
