#ifndef CLI_VERIFICATION_H
#define CLI_VERIFICATION_H

#include <stdint.h>

#include "cli/guess.h"
#include "config/config.h"
#include "model/delivery_check.h"

enum verification_outcome {
        VERIFICATION_OK,
        VERIFICATION_FAILED,
        VERIFICATION_UNKNOWN /* a header that the check needs is missing or malformed */
};

struct verification_check {
        enum verification_outcome outcome;
        struct delivery_refusal refusal; /* what the receiver answers, when it failed */
};

/* What the receiver makes of a delivery. */
struct verification {
        const struct config_source *source;
        struct verification_check checks[DELIVERY_N_CHECKS];
        int first_failed; /* the check that answers; DELIVERY_N_CHECKS when all are ok */
        int is_too_large; /* the body: that answers before them */
        int status;       /* of the receiver's answer: 200 when it accepts the delivery */
        const char *code; /* of its error; NULL: none */
        int has_age;
        int64_t age_ms;     /* of the signed timestamp, negative when it lies ahead */
        struct guess guess; /* when the signature is not ok */
};

/**
 * verification_make(source, subject, max_body, secrets, verification):
 * Make each of the receiver's checks, by the receiver's code, also after one has failed; where the signature does not match
 * or cannot be read, find out why. A max_body of 0 is not known. Clear it with verification_clear().
 */
void verification_make(const struct config_source *source, const struct delivery_subject *subject,
                       uint64_t max_body, const struct guess_secrets *secrets,
                       struct verification *verification);
void verification_clear(struct verification *verification);

/* Write it to stdout: a line for each check, what the receiver answers, and what is probably wrong; or as JSON. */
void verification_print(const struct verification *verification);
void verification_print_json(const struct verification *verification);

#endif
