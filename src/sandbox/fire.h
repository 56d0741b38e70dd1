#ifndef SANDBOX_FIRE_H
#define SANDBOX_FIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/signature.h"

/*
 * `gatepost-sandbox fire`: sends many signed deliveries to a receiver and reports its answers. fire_main.c
 * reads the arguments, fire.c sends and reports.
 */

#define FIRE_KINDS_MAX 32
#define FIRE_STATUS_MAX 599

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

struct fire_report {
        uint64_t n_sent;
        uint64_t n_repeated;
        uint64_t n_forged;
        uint64_t answers[FIRE_STATUS_MAX + 1]; /* by HTTP status; 0: no answer */
        uint64_t n_genuine_refused;            /* genuine deliveries answered neither 2xx nor 5xx */
        uint64_t n_forged_accepted;
        uint64_t n_failed;      /* no answer, or 5xx */
        uint32_t *latencies_us; /* of answered deliveries; has room for the plan's count */
        size_t n_latencies;
        int64_t took_us;
        char reason[256]; /* why the first unanswered delivery got no answer */
};

/**
 * fire_run(plan, report):
 * Send all deliveries, or as many as possible until SIGINT or SIGTERM, and fill in the report, which the
 * caller clears. Returns 0, or -1 when out of memory.
 */
int fire_run(const struct fire_plan *plan, struct fire_report *report) MUST_CHECK;

/* Count a finished delivery. status is 0 if there was no answer; then reason says why. */
void fire_report_add(struct fire_report *report, int status, int forged, int64_t latency_us,
                     const char *reason);

/* Sort the latencies, for fire_report_percentile(). */
void fire_report_sort(struct fire_report *report);

/*
 * Return the latency in microseconds that `percent` of the answered deliveries did not exceed; 0 if there are
 * none.
 */
uint32_t fire_report_percentile(const struct fire_report *report, unsigned percent);

void fire_report_print(const struct fire_report *report, int json);

/*
 * Return EX_TEMPFAIL if deliveries failed, EX_DATAERR if a genuine delivery was refused or a forged one
 * accepted, otherwise 0.
 */
int fire_report_exit_status(const struct fire_report *report);

void fire_report_clear(struct fire_report *report);

/* Parse the arguments (argv[0] is `fire`) and run. Returns an exit status of sysexits.h. */
int fire_main(int argc, char **argv) MUST_CHECK;

#endif
