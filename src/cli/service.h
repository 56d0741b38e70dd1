#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "config/config.h"

/*
 * The invoicing service's API: over HTTPS with certificate and host name verified, or over HTTP to this
 * machine. Redirects are not followed, answers are bounded, and the API key is never printed.
 */
struct service;

/**
 * service_open(config, timeout_ms, status, error):
 * Make a client with the API key of the configuration; each request may take timeout_ms. Returns NULL, with
 * the exit status and the reason.
 */
struct service *service_open(const struct config *config, uint64_t timeout_ms, int *status,
                             struct error *error) MUST_CHECK;
void service_close(struct service *service);

/* Why a request has failed. The text may quote the service, so it is printed by command_fail(). */
struct service_failure {
        int was_sent;    /* the request, perhaps in part */
        int http_status; /* 0: there is no answer */
        struct error reason;
        const char *remedy; /* NULL: the service's message says it */
};

/**
 * service_request(service, method, path, body, answer, failure):
 * Send a request to {base_url}path, whose parts are percent-encoded. The body is JSON; NULL: none. Returns 0
 * with the answer, which the caller frees by json_tree_free(), NULL if it is empty; or an exit status with
 * the failure.
 */
int service_request(struct service *service, const char *method, const char *path, const char *body,
                    struct json_value **answer, struct service_failure *failure) MUST_CHECK;

/* Return whether the service may have done what it was asked for, although the request has failed. */
int service_may_have_done(const struct service_failure *failure);

#endif
