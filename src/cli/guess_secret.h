#ifndef CLI_GUESS_SECRET_H
#define CLI_GUESS_SECRET_H

#include <stddef.h>

#include "model/signature.h"

/* A secret that may have been used, as a key. */
struct guess_secret {
        struct signature_key *key;
        char *what; /* how it differs from what is configured, as a clause; NULL: not at all */
};

struct guess_secrets {
        struct guess_secret *items; /* those that are configured for the source come first */
        size_t n;
};

/* Add a secret that is configured for the source. */
void guess_secrets_add(struct guess_secrets *secrets, const char *secret, size_t len);

/* Add what may have been made of it: a newline more, decoded or encoded text. After all that are configured. */
void guess_secrets_add_variants(struct guess_secrets *secrets, const char *secret, size_t len);

/* Add a secret of another source. */
void guess_secrets_add_foreign(struct guess_secrets *secrets, const char *source, const char *secret,
                               size_t len);

void guess_secrets_clear(struct guess_secrets *secrets);

#endif
