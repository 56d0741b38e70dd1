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
struct service;

/**
 * service_open(config, error):
 * Make a client with the API key of the configuration. Return NULL with the reason if [service] is
 * incomplete, or its key cannot be read.
 */
struct service *service_open(const struct config *config, struct error *error) MUST_CHECK;
void service_close(struct service *service);

/* Why a request has failed. The text may quote the service, so it is printed by command_fail(). */
struct service_failure {
        int http_status; /* 0: there is no answer */
        struct error reason;
        const char *remedy; /* NULL: the service's message says it */
        int may_be_done;    /* the service may have done what it was asked for */
};

/**
 * service_request(service, method, path, body, answer, failure):
 * Send a request to {base_url}path, whose parts are percent-encoded. The body is JSON; NULL: none. Return 0
 * with the answer, which the caller frees by json_tree_free(), NULL if it is empty; or an exit status with
 * the failure.
 */
int service_request(struct service *service, const char *method, const char *path, const char *body,
                    struct json_value **answer, struct service_failure *failure) MUST_CHECK;

#endif
