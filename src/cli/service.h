#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "config/config.h"

/*
 * The invoicing service's API: over HTTPS with certificate and host name verified, or over HTTP to this
 * machine. Redirects are not followed, answers are bounded, and the API key is never printed.
 */

/* Why a request has failed. The text may quote the service, so it is printed by command_fail(). */
struct service_failure {
        int http_status; /* 0: there is no answer */
        struct error reason;
        const char *remedy; /* NULL: the service's message says it */
        int may_be_done;    /* the service may have done what it was asked for */
};

/**
 * service_request(config, method, path, body, answer, failure):
 * Send a request to {base_url}path, whose parts are percent-encoded, with the API key of the configuration,
 * and wait up to 10 s. The body is JSON; NULL: none. Return 0 with the answer, which the caller frees by
 * json_tree_free(), NULL if it is empty; or an exit status with the failure, also if [service] is incomplete.
 */
int service_request(const struct config *config, const char *method, const char *path, const char *body,
                    struct json_value **answer, struct service_failure *failure) MUST_CHECK;

#endif
