#ifndef METRICS_STATUS_WRITER_H
#define METRICS_STATUS_WRITER_H

#include "base/json.h"
#include "metrics/metrics.h"

/*
 * Writes the JSON of /status, for metrics_status.c, metrics_configuration.c, metrics_proxy.c,
 * metrics_router.c and metrics_spool.c.
 */
struct status_writer {
        const struct metrics *metrics;
        struct json_writer *json;
        struct metrics_partition *partitions; /* a copy of those of the metrics */
        size_t n_partitions;
        int has_failed; /* memory has */
};

/*
 * Return a copy of a text with \xNN for bytes that are not UTF-8 and for control characters, as in the
 * Prometheus text. The caller frees it. Return NULL when memory fails.
 */
char *status_writer_copy(struct status_writer *writer, const char *text);

/* Write a member with such a text, a count, a time in seconds since the epoch (0: null), or a fraction. */
void status_writer_text(struct status_writer *writer, const char *name, const char *text);
void status_writer_count(struct status_writer *writer, const char *name, uint64_t count);
void status_writer_time(struct status_writer *writer, const char *name, uint64_t time_s);
void status_writer_fraction(struct status_writer *writer, const char *name, double value);

/* Write the number of values and two quantiles; without values, the quantiles are null. */
void status_writer_figures(struct status_writer *writer, const struct histogram_scale *scale,
                           const struct histogram_figures *figures);

/*
 * Write the member `configuration`; the member `untrustedProxy`; what is known of the router's partitions;
 * the member `spool`, if there is a spool.
 */
void metrics_configuration(struct status_writer *writer);
void metrics_proxy_status(struct status_writer *writer);
void metrics_router_status(struct status_writer *writer);
void metrics_spool_status(struct status_writer *writer);

#endif
