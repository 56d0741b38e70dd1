#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include <stddef.h>

#include <curl/curl.h>

#include "base/compiler.h"
#include "base/error.h"

/* What a server answered. */
struct transfer_answer {
        int status;
        char *body; /* a string, cut at the limit; the caller frees it */
};

/* How a server is asked. */
struct transfer {
        const char *url;
        const char *socket_path; /* NULL, or the Unix-domain socket to go through */
        const char *
            ca_file; /* NULL, or the server's certificate with its chain: only they are trusted, by any name */
        long timeout_ms;
        size_t max_body; /* bytes of the answer's */
};

/**
 * transfer_run(transfer, curl, answer, error):
 * Ask, over HTTP or HTTPS and without a proxy; method, headers and body have been set in curl, which stays the caller's and
 * may be NULL, for lack of memory. Returns 0, or -1 with the reason when there is no answer.
 */
int transfer_run(const struct transfer *transfer, CURL *curl, struct transfer_answer *answer,
                 struct error *error) MUST_CHECK;

/* Ask by GET. */
int transfer_get(const struct transfer *transfer, struct transfer_answer *answer,
                 struct error *error) MUST_CHECK;

#endif
