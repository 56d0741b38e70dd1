#ifndef METRICS_METRICS_REPORT_H
#define METRICS_METRICS_REPORT_H

#include <stddef.h>

#include "base/compiler.h"
#include "metrics/metrics.h"

/* Return the metrics in the Prometheus text format 0.0.4, *len bytes for the caller to free. Main thread. */
char *metrics_report_prometheus(const struct metrics *metrics, size_t *len) MUST_CHECK;

/* Likewise as one JSON object, described in gatepostd(8), with quantiles instead of buckets. */
char *metrics_report_status(const struct metrics *metrics, size_t *len) MUST_CHECK;

#endif
