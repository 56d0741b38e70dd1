#ifndef SANDBOX_TRANSPORT_H
#define SANDBOX_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"

/* POSTs over HTTP and HTTPS, many at a time, by libcurl on an event base. No redirect is followed. One thread. */
struct transport;
struct transfer;

/* What to send. headers are whole lines. The body must stay until the transfer is done; the rest is copied. */
struct transport_post {
        const char *url;
        const char *const *headers;
        size_t n_headers;
        const void *body;
        size_t len;
};

struct transport_result {
        int status;         /* of the answer; 0 when there was none */
        const char *reason; /* why there was none: visible ASCII, in one line */
};

/* Called once for each transfer that was not cancelled, when it is gone. It may begin others. */
typedef void transport_done(const struct transport_result *result, void *arg);

/* Whether the file has certificates to trust. Returns 0, or -1 with the reason. */
int transport_check_ca_file(const char *path, struct error *error) MUST_CHECK;

/* ca_file: certificates to trust; NULL: the system's. max_idle: connections that are kept. NULL when memory fails. */
struct transport *transport_new(struct event_base *base, const char *ca_file, size_t max_idle) MUST_CHECK;

/* Cancels all transfers. NULL is harmless. */
void transport_free(struct transport *transport);

/**
 * transport_start(transport, post, done, arg):
 * Begin to send. There is an answer, or none, after 10 s at the latest; done is called later, never from here. Returns NULL
 * when it cannot begin.
 */
struct transfer *transport_start(struct transport *transport, const struct transport_post *post,
                                 transport_done *done, void *arg) MUST_CHECK;

/* Break it off; done is not called. */
void transport_cancel(struct transfer *transfer);

#endif
