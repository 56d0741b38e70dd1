#ifndef SANDBOX_LOAD_H
#define SANDBOX_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/signature.h"
#include "sandbox/load_report.h"

#define LOAD_KINDS_MAX 32

/* What to send at a receiver. */
struct load_plan {
        const char *url;
        const char *service; /* headers are x-<service>-signature and so on */
        const char *webhook_id;
        const char *ca_file; /* NULL: the system's */
        const struct signature_key *key;
        const struct signature_key *wrong_key; /* for the forged ones */
        const char *kinds[LOAD_KINDS_MAX];     /* in turn */
        size_t n_kinds;                        /* at least 1 */
        uint64_t count;
        uint64_t rate;           /* a second; 0: as fast as they are answered */
        uint64_t connections;    /* at most so many under way */
        uint64_t repeat_percent; /* of the genuine ones, that repeat the one before, under its id */
        uint64_t forged_percent;
};

/**
 * load_run(plan, report):
 * Send all of it, or until SIGINT or SIGTERM, and report on all that was sent; the caller clears the report. Returns 0, or -1 when it cannot
 * begin.
 */
int load_run(const struct load_plan *plan, struct load_report *report) MUST_CHECK;

/* `gatepost-sandbox fire`: the arguments, argv[0] being `fire`, then load_run(). Returns an exit status of sysexits.h. */
int load_main(int argc, char **argv) MUST_CHECK;

#endif
