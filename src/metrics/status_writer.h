#ifndef METRICS_STATUS_WRITER_H
#define METRICS_STATUS_WRITER_H

#include "base/json.h"
#include "metrics/metrics.h"

/* Writes the JSON of /status, for metrics_status.c and metrics_configuration.c. */
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

/* Write a member with such a text, or with a fraction. */
void status_writer_text(struct status_writer *writer, const char *name, const char *text);
void status_writer_fraction(struct status_writer *writer, const char *name, double value);

/* Write the member `configuration`. */
void metrics_configuration(struct status_writer *writer);

#endif
