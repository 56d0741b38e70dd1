#ifndef CLI_API_CLIENT_H
#define CLI_API_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

#define API_CLIENT_ANSWER_MAX 1048576 /* bytes */

/*
 * A client of the invoicing service's API: over HTTPS with certificate and host name verified, or over HTTP
 * to this machine. Redirects are not followed, answers are bounded, and the API key is never printed.
 */
struct api_client;

/**
 * api_client_new(config, timeout_ms, status, error):
 * Make a client with the API key of the configuration; each call may take timeout_ms. Returns NULL, with
 * the exit status and the reason.
 */
struct api_client *api_client_new(const struct config *config, uint64_t timeout_ms, int *status,
                                  struct error *error) MUST_CHECK;

/* Likewise, but print the reason. */
struct api_client *api_client_open(const struct config *config, uint64_t timeout_ms, int *status) MUST_CHECK;
void api_client_close(struct api_client *client);

struct api_client_answer {
        long status; /* of HTTP; 0: no answer */
        char *body;  /* a string */
        size_t len;
        char *failure;      /* why there is no answer */
        const char *remedy; /* of the failure, a constant; NULL: none is known */
        int is_hopeless;    /* a repetition would fail, too, as with a wrong certificate */
        size_t n_calls;     /* so far */
};

/**
 * api_client_call(client, method, path, body, len, answer):
 * Call {base_url}path, with the path percent-encoded. answer->n_calls counts the calls; set it to 0 before
 * the first. Release the answer with api_client_answer_clear().
 */
void api_client_call(struct api_client *client, const char *method, const char *path, const char *body,
                     size_t len, struct api_client_answer *answer);

/*
 * Likewise, for GET and DELETE: without an answer or after a 5xx, repeat up to three times, with growing
 * pauses.
 */
void api_client_call_repeatedly(struct api_client *client, const char *method, const char *path,
                                struct api_client_answer *answer);

/* Wait before the next call: half a second after the first, then one, two, and so on. */
void api_client_pause(size_t n_calls);

/* Return whether a repetition may succeed. */
int api_client_may_recover(const struct api_client_answer *answer);

void api_client_answer_clear(struct api_client_answer *answer);

/* Percent-encode a part of a path. The caller frees it. */
char *api_client_escape(const char *text);

/**
 * api_client_report(command, answer):
 * Print a failure to stderr: its meaning and remedy, the service's message and violations, and the request
 * id. command is the command's name. Returns the exit status.
 */
int api_client_report(const char *command, const struct api_client_answer *answer);

/* Explain a failure, without printing it. Sets the remedy, a constant. Returns the exit status. */
int api_client_explain(const struct api_client_answer *answer, struct error *error, const char **remedy);

/* Return whether the call succeeded: any 2xx, since the service does not document which. */
int api_client_succeeded(const struct api_client_answer *answer);

#endif
