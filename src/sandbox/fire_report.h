#ifndef SANDBOX_FIRE_REPORT_H
#define SANDBOX_FIRE_REPORT_H

#include <stddef.h>
#include <stdint.h>

#define FIRE_REPORT_STATUS_MAX 999

/* The deliveries that were sent and their answers. Initialize with zeros. */
struct fire_report {
        uint64_t n_sent;
        uint64_t n_repeated;
        uint64_t n_forged;
        uint64_t answers[FIRE_REPORT_STATUS_MAX + 1]; /* by HTTP status; 0: no answer */
        uint64_t n_genuine_refused;                   /* genuine deliveries answered neither 2xx nor 5xx */
        uint64_t n_forged_accepted;
        uint64_t n_failed;     /* no answer, or 5xx */
        int64_t *latencies_us; /* of answered deliveries */
        size_t n_latencies;
        int64_t took_us;
        char reason[256]; /* why the first unanswered delivery got no answer */
};

/* Count a finished delivery. status is at most 999, and 0 if there was no answer; then reason says why. */
void fire_report_add(struct fire_report *report, int status, int forged, int64_t latency_us,
                     const char *reason);

/* Print it, and on stderr why there was no answer. Sorts the latencies. */
void fire_report_print(struct fire_report *report);
void fire_report_clear(struct fire_report *report);

/*
 * Return EX_TEMPFAIL if deliveries failed, EX_DATAERR if a genuine delivery was refused or a forged one
 * accepted, otherwise 0.
 */
int fire_report_exit_status(const struct fire_report *report);

#endif
