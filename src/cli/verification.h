#ifndef CLI_VERIFICATION_H
#define CLI_VERIFICATION_H

#include <stdint.h>

#include "cli/diagnosis.h"
#include "receiver/screen.h"

enum verification_outcome {
        VERIFICATION_OK,
        VERIFICATION_FAILED,
        VERIFICATION_UNKNOWN /* a header that the check needs is missing or malformed */
};

struct verification_check {
        enum verification_outcome outcome;
        struct refusal refusal; /* the receiver's, if it failed */
        char *message;
};

/* A receiver's verdict on a delivery. */
struct verification {
        const struct config_source *source;
        struct verification_check checks[SCREEN_N_CHECKS];
        int status;       /* of the receiver's answer */
        const char *code; /* of its error; NULL: it accepts the delivery */
        int is_too_large; /* the body: the receiver answers that before it checks anything */
        int64_t age_ms;   /* by the timestamp, if that is well formed */
        struct diagnosis diagnosis;
};

/**
 * verification_make(config, source, subject, max_body, verification):
 * Make all of the receiver's checks, also after one has failed, and diagnose a signature that does not
 * match. max_body is in bytes; 0: no limit. Release it with verification_clear().
 */
void verification_make(const struct config *config, const struct config_source *source,
                       const struct screen_subject *subject, uint64_t max_body,
                       struct verification *verification);
void verification_clear(struct verification *verification);

/* Write each check, the receiver's answer and the causes to stdout, as text or JSON. */
void verification_print(const struct verification *verification);
void verification_print_json(const struct verification *verification);

#endif
