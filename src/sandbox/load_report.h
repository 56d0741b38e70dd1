#ifndef SANDBOX_LOAD_REPORT_H
#define SANDBOX_LOAD_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LOAD_STATUS_MAX 599

/* What became of a load. */
struct load_report {
        uint64_t n_sent;
        uint64_t n_repeated;
        uint64_t n_forged;
        uint64_t answers[LOAD_STATUS_MAX + 1]; /* by HTTP status; 0: none came */
        uint64_t n_genuine_refused; /* genuine ones answered 4xx, or otherwise neither 2xx nor 5xx */
        uint64_t n_forged_accepted;
        uint64_t n_failed;      /* no answer, or 5xx */
        uint32_t *latencies_us; /* of those answered; the plan's count of them has room */
        size_t n_latencies;
        int64_t took_us;
        char reason[256]; /* why the first one without an answer had none */
};

/* One has ended. status is 0 without an answer; then reason says why. */
void load_report_add(struct load_report *report, int status, int forged, int64_t latency_us,
                     const char *reason);

/* The latency that so many percent of those answered did not exceed, in microseconds. Call load_report_sort() before. */
uint32_t load_report_percentile(const struct load_report *report, unsigned percent);
void load_report_sort(struct load_report *report);

void load_report_print(const struct load_report *report, int json);

/* 0: each genuine one was accepted and no forged one; EX_DATAERR; EX_TEMPFAIL when some had no answer or 5xx. */
int load_report_exit_status(const struct load_report *report);

void load_report_clear(struct load_report *report);

#endif
