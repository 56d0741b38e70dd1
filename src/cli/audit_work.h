#ifndef CLI_AUDIT_WORK_H
#define CLI_AUDIT_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/audit_plan.h"
#include "cli/audit_result.h"
#include "cli/tally.h"
#include "model/digest.h"
#include "model/release.h"

/*
 * A running audit. audit.c runs it: audit_expected.c reads `deliveries` and decides again what the router
 * must have published, audit_found.c reads what was published, a tally compares both, and audit_result.c
 * prints the result.
 */

/* Why the audit accepts a record of quarantine whatever it would decide itself. */
enum audit_exception_reason {
        AUDIT_UNPUBLISHABLE, /* no topic takes the delivery; the record has no value */
        AUDIT_UNVERIFIED,    /* its signature is wrong by the secrets that the router had */
        AUDIT_RELEASED,      /* it was released since, maybe because the configuration was changed */
        AUDIT_N_EXCEPTIONS,
};

/* A record of quarantine with such a reason. */
struct audit_exception {
        struct release_id place; /* of the delivery */
        struct release_id id;    /* of the record */
        enum audit_exception_reason reason;
        uint8_t content[DIGEST_FINGERPRINT_SIZE];     /* of key and value */
        uint8_t fingerprint[DIGEST_FINGERPRINT_SIZE]; /* of the whole record */
};

struct audit {
        const struct audit_plan *plan;
        struct tally *tally;
        struct digest *digest;
        size_t n_passes; /* finished passes */
        struct audit_result result;
        struct audit_exception *exceptions; /* sorted by place */
        size_t n_exceptions;
        struct release_id *released; /* the records that markers name, sorted */
        size_t n_released;
};

/* Return a new audit, or NULL with the reason. The plan must outlive it. */
struct audit *audit_work_new(const struct audit_plan *plan, struct error *error) MUST_CHECK;
void audit_work_free(struct audit *audit);

/* Compute the fingerprint of a published record. Returns 0, or -1 when OpenSSL fails. */
int audit_work_fingerprint(struct digest *digest, const rd_kafka_message_t *message,
                           uint8_t bytes[DIGEST_FINGERPRINT_SIZE]) MUST_CHECK;

#endif
