#ifndef SANDBOX_FIRE_H
#define SANDBOX_FIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/signature.h"
#include "sandbox/fire_report.h"

/*
 * `gatepost-sandbox fire`: sends many signed deliveries to a receiver and reports its answers. fire_main.c
 * reads the arguments, fire.c sends, fire_report.c reports.
 */

#define FIRE_KINDS_MAX 32

struct fire_plan {
        const char *url;
        const char *service; /* headers are x-<service>-signature and so on */
        const char *webhook_id;
        const char *ca_file; /* NULL: the system's certificates */
        const struct signature_key *key;
        const struct signature_key *wrong_key; /* signs the forged deliveries */
        const char *kinds[FIRE_KINDS_MAX];     /* sent in turn */
        size_t n_kinds;                        /* at least 1 */
        uint64_t count;
        /* deliveries per second; 0: send as soon as a connection is free */
        uint64_t rate;
        uint64_t connections; /* maximum number of requests under way */
        /* share of the genuine deliveries that repeat the previous one, with its id */
        uint64_t repeat_percent;
        uint64_t forged_percent; /* share of all deliveries */
};

/**
 * fire_run(plan, report):
 * Send all deliveries, or as many as possible until SIGINT or SIGTERM, and add them to the report. Returns 0,
 * or -1 when out of memory.
 */
int fire_run(const struct fire_plan *plan, struct fire_report *report) MUST_CHECK;

/* Parse the arguments (argv[0] is `fire`) and run. Returns an exit status of sysexits.h. */
int fire_main(int argc, char **argv) MUST_CHECK;

#endif
