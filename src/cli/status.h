#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stdint.h>

#include "base/json_tree.h"

/* A report of the admin endpoint: its answer to GET /status, which gatepostd(8) describes. */
struct status {
        struct json_value *report;
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
 * Return a number, or a number of an object; 0 if it is missing, or cannot be a count or a time: what answers
 * may be something else than gatepostd.
 */
double status_value(const struct json_value *number);
double status_number(const struct json_value *object, const char *name);

/*
 * Return whether a member of an object is this number, as it is written: some file systems have inodes of 64
 * bits, which a double cannot hold.
 */
int status_is_number(const struct json_value *object, const char *name, intmax_t number);

/* Return the sum of an object's numbers. */
double status_sum(const struct json_value *object);

/* Return whether a member of an object is true. */
int status_flag(const struct json_value *object, const char *name);

/* Print the spool of a receiver, or the state directory of a router, if the report has one. */
void status_print_spool(const struct json_value *report);
void status_print_state(const struct json_value *report);

/* Print how many records wait for a router, as far as it knows, and its partitions that are not routed. */
void status_print_lag(const struct json_value *report);

/* Write a status to stdout: as text; or as JSON, indented or on one line. */
void status_print(const struct status *status, const struct status_rates *rates);
void status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line);

#endif
