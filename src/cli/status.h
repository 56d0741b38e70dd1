#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stdint.h>

#include "base/prometheus.h"

/* A report of the admin endpoint. */
struct status {
        int is_ready;
        char *readiness; /* a line for each role, `router: ready` or why not */
        struct prometheus page;
        int64_t read_ms; /* monotonic */
};

/* Rates over a time. */
struct status_rates {
        double seconds;
        int since_start; /* of the daemon, because there is no earlier status to compare with */
        double accepted; /* a second, as the others */
        double refused;
        double events;
        double duplicates;
        double quarantined;
};

/* Return the daemon's uptime in seconds, by this machine's clock. */
double status_uptime(const struct status *status);

/*
 * Return a metric's value, or 0 if it cannot be a count or a time: what answers may be something else than
 * gatepostd.
 */
double status_tame(double value);

/* Write a status to stdout: as text; or as JSON, indented or on one line. */
void status_print(const struct status *status, const struct status_rates *rates);
void status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line);

#endif
