#ifndef BASE_HTTP_CLIENT_H
#define BASE_HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * HTTP requests by libcurl: one at a time by http_client_call(), or prepared for libcurl's multi interface.
 * Redirects are not followed. Running out of memory exits the process, as in base/mem.h.
 */

/* Default time limit of a call that a person waits for. */
#define HTTP_CLIENT_TIMEOUT_MS 10000

/* A request, over HTTP or HTTPS. */
struct http_client_request {
        const char *method;
        const char *url;
        const char *socket_path;    /* connect to this Unix-domain socket; NULL: to the URL's host */
        const char *ca_file;        /* trust only its certificates; NULL: the system's, and SSL_CERT_FILE */
        int allows_any_name;        /* of the certificate */
        int uses_proxy;             /* of the environment */
        const char *const *headers; /* whole lines */
        size_t n_headers;
        const void *body; /* JSON; NULL: none */
        size_t len;
        long timeout_ms;   /* of the whole call */
        size_t max_answer; /* bytes of the answer's body that http_client_call() reads */
};

enum http_client_failure {
        HTTP_CLIENT_FAILED,
        HTTP_CLIENT_TIMED_OUT,
        HTTP_CLIENT_UNTRUSTED, /* the server's certificate; nothing was sent */
};

struct http_client_answer {
        int status;
        char *body; /* a string; the caller frees it */
        size_t len;
        int is_cut;                       /* the body was longer than max_answer */
        enum http_client_failure failure; /* if there is no answer */
        int os_error;                     /* errno of a connection that failed, or 0 */
        int is_connected;                 /* there was a connection, perhaps without TLS yet */
};

/**
 * http_client_call(request, answer, error):
 * Send a request and read the answer. Returns 0, or -1 with the reason when there is no answer.
 */
int http_client_call(const struct http_client_request *request, struct http_client_answer *answer,
                     struct error *error) MUST_CHECK;

/* A request that libcurl can run. Initialize with zeros. */
struct http_client_transfer {
        CURL *easy;
        struct curl_slist *lines;
        char reason[CURL_ERROR_SIZE]; /* why it failed; may be empty, may quote the server's certificate */
};

/**
 * http_client_prepare(transfer, request):
 * Set up a transfer that discards the answer's body. It must not be moved; of the request, the body must stay
 * valid. The caller releases it.
 */
void http_client_prepare(struct http_client_transfer *transfer, const struct http_client_request *request);
void http_client_release(struct http_client_transfer *transfer);

#endif
