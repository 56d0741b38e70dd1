#ifndef CLI_SIGN_H
#define CLI_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "model/delivery.h"

/* Larger than DELIVERY_ID_MAX, so that invalid ids can be sent, too. */
#define SIGN_ID_SIZE 128

/* A delivery to sign as the service would. */
struct sign_input {
        const struct config_source *source;
        char delivery_id[SIGN_ID_SIZE];
        char webhook_id[SIGN_ID_SIZE];
        char *body;
        size_t len;
};

/* Set the ids. For NULL, choose a random delivery-id; the source's first webhook-id or a random one. */
void sign_choose_ids(struct sign_input *signing, const char *delivery_id, const char *webhook_id);

/* Values of the four headers; release them with sign_clear_values(). */
struct sign_values {
        char *values[DELIVERY_N_HEADERS];
};

/**
 * sign_delivery(signing, key, timestamp, values, error):
 * Sign the body at a time in seconds since the epoch. Returns 0, or -1 with the reason.
 */
int sign_delivery(const struct sign_input *signing, const struct signature_key *key, int64_t timestamp,
                  struct sign_values *values, struct error *error) MUST_CHECK;
void sign_clear_values(struct sign_values *values);

#endif
