#ifndef SANDBOX_TRANSPORT_H
#define SANDBOX_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "model/signature.h"

/*
 * Sends signed POST requests over HTTP and HTTPS, many at a time, with libcurl on an event base. Redirects
 * are not followed and proxies are not used. Not thread-safe.
 */
struct transport;
struct transport_request;

/* One attempt of a delivery. */
struct transport_attempt {
        const char *service; /* headers are x-<service>-signature and so on */
        const struct signature_key *key;
        const char *url;
        const char *webhook_id;
        const char *delivery_id;
        int64_t timestamp; /* seconds since the epoch */
        const void *body;  /* must stay valid until the request is done; all else is copied */
        size_t len;
};

struct transport_result {
        int status;         /* HTTP status; 0: no answer */
        const char *reason; /* of status 0: visible ASCII, one line */
};

/* Called once for each request that is not cancelled, after it is freed. It may send further requests. */
typedef void transport_done(const struct transport_result *result, void *arg);

/* Trust the certificates in ca_file, or the system's if it is NULL. The text must outlive the transport. */
struct transport *transport_new(struct event_base *base, const char *ca_file);

/* Cancel all requests. NULL is harmless. */
void transport_free(struct transport *transport);

/**
 * transport_send(transport, attempt, done, arg):
 * Sign and send a request, with a timeout of 10 s. done is called later, never from within. Returns NULL on
 * failure.
 */
struct transport_request *transport_send(struct transport *transport, const struct transport_attempt *attempt,
                                         transport_done *done, void *arg) MUST_CHECK;

/* Abort the request; done is not called. */
void transport_cancel(struct transport_request *request);

#endif
