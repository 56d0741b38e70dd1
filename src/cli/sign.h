#ifndef CLI_SIGN_H
#define CLI_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/http_client.h"
#include "cli/receiver_url.h"
#include "config/config.h"
#include "model/delivery.h"

/* Larger than DELIVERY_ID_MAX, so that invalid ids can be sent, too. */
#define SIGN_ID_SIZE 128

/* A delivery to sign as the service would. */
struct sign_input {
        const struct config_source *source;
        char delivery_id[SIGN_ID_SIZE];
        char webhook_id[SIGN_ID_SIZE];
        const char *agent; /* the User-Agent to post it with */
        char *body;
        size_t len;
};

/* Set the ids. For NULL, choose a random delivery-id; the source's first webhook-id or a random one. */
void sign_choose_ids(struct sign_input *signing, const char *delivery_id, const char *webhook_id);

/**
 * sign_delivery(signing, key, timestamp, lines, error):
 * Sign the body at a time in seconds since the epoch, and make the lines of the four headers, which
 * sign_free_lines() releases. Returns 0, or -1 with the reason.
 */
int sign_delivery(const struct sign_input *signing, const struct signature_key *key, int64_t timestamp,
                  char *lines[DELIVERY_N_HEADERS], struct error *error) MUST_CHECK;
void sign_free_lines(char *lines[DELIVERY_N_HEADERS]);

/* How long sign_post() waits for an answer. */
#define SIGN_POST_TIMEOUT_MS 15000

/**
 * sign_post(signing, key, timestamp, to, answer, error):
 * Sign the body likewise, and post it. Returns 0, or -1 with the reason when there is no answer. The caller
 * frees the body of the answer in any case.
 */
int sign_post(const struct sign_input *signing, const struct signature_key *key, int64_t timestamp,
              const struct receiver_url *to, struct http_client_answer *answer,
              struct error *error) MUST_CHECK;

#endif
