#ifndef SANDBOX_MAIL_H
#define SANDBOX_MAIL_H

#include "base/compiler.h"
#include "base/error.h"

/* A delivery that was given up, as the entity's users are told. None of the texts has a line break. */
struct mail {
        const char *entity;
        const char *kind;
        const char *url;
        const char *webhook_id;
        const char *delivery_id;
        const char *last_outcome; /* of the last attempt, for a person */
        unsigned n_attempts;
};

/**
 * mail_write(directory, mail, error):
 * Write <delivery-id>.eml (RFC 5322) into the directory; it appears there complete. Returns 0, or -1 with the reason.
 */
int mail_write(const char *directory, const struct mail *mail, struct error *error) MUST_CHECK;

#endif
