#ifndef CLI_API_CLIENT_H
#define CLI_API_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

#define API_CLIENT_ANSWER_MAX 1048576 /* bytes */
#define API_CLIENT_TIMEOUT_MS UINT64_C(30000)

/*
 * The invoicing service's own interface, called with the API key: over HTTPS with the certificate and the host name checked,
 * or over HTTP to this machine. Redirects are not followed, the answer is bounded, the key is in no message.
 */
struct api_client;

/**
 * api_client_open(config, timeout_ms, status):
 * Read the key and get ready. timeout_ms is for each call. Returns NULL after saying why, with the exit status for it.
 */
struct api_client *api_client_open(const struct config *config, uint64_t timeout_ms, int *status) MUST_CHECK;
void api_client_close(struct api_client *client);

struct api_client_answer {
        long status; /* of HTTP; 0: there was no answer */
        char *body;  /* the caller frees it; a string */
        size_t len;
        char *failure;   /* why there was none; the caller frees it */
        int is_hopeless; /* and will be none if it is tried again: a certificate that is wrong, say */
        size_t n_calls;  /* how often it was tried */
};

/**
 * api_client_call(client, method, path, body, len, answer), api_client_call_again(client, method, path, answer):
 * Call {base_url}path; path is escaped already. The second is for GET and DELETE: it tries again, with growing pauses, three times
 * at most, when there is no answer or a 5xx. answer has what came last; release it with api_client_answer_clear().
 */
void api_client_call(struct api_client *client, const char *method, const char *path, const char *body,
                     size_t len, struct api_client_answer *answer);
void api_client_call_again(struct api_client *client, const char *method, const char *path,
                           struct api_client_answer *answer);

/* Wait before a call is tried again, the longer the oftener it was: half a second, one, two, and so on. */
void api_client_pause(size_t n_calls);

/* Whether an answer, or that there is none, may be another one if it is tried again. */
int api_client_may_recover(const struct api_client_answer *answer);

void api_client_answer_clear(struct api_client_answer *answer);

/* Part of a path, percent-encoded; the caller frees it. */
char *api_client_escape(const char *text);

/**
 * api_client_report(command, answer):
 * Say on stderr what an answer that is no success means: what the service says of it, each violation with its field, the
 * request's id, and the remedy. command is the command's name. Returns the exit status for it.
 */
int api_client_report(const char *command, const struct api_client_answer *answer);

/* Whether an answer is a success: any 2xx, since the service does not document which. */
int api_client_succeeded(const struct api_client_answer *answer);

#endif
