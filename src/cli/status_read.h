#ifndef CLI_STATUS_READ_H
#define CLI_STATUS_READ_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/prometheus.h"
#include "cli/own_url.h"

/* What a daemon's admin endpoint says at one moment. */
struct status {
        int is_ready;
        char *readiness; /* a line for each role, `router: ready` or why not */
        struct prometheus page;
        int64_t read_ms; /* monotonic */
};

/**
 * status_read(endpoint, status, error):
 * Ask /readyz and /metrics below a URL that ends without a slash. Returns 0, for status_clear(); or -1 with the reason:
 * nobody answers, or somebody else.
 */
int status_read(const struct own_url *endpoint, struct status *status, struct error *error) MUST_CHECK;
void status_clear(struct status *status);

/* What happened over a time. */
struct status_rates {
        double seconds;
        int since_start; /* of the daemon, for there is nothing earlier to compare with */
        double accepted; /* each a second */
        double refused;
        double events;
        double duplicates;
        double quarantined;
};

/* The rates since the earlier status, or since the daemon's start if that is NULL or was before the start. */
void status_rates(const struct status *status, const struct status *earlier, struct status_rates *rates);

/* The daemon's age, by this machine's clock. */
double status_uptime(const struct status *status);

/* A metric's value as a number that can be shown: who answers need not be gatepostd. */
double status_tame(double value);

#endif
