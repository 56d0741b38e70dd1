#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include <stdio.h>

#include "metrics/histogram.h"

/* Writing the Prometheus text format, version 0.0.4. */

/* What comes before the samples of a metric: its help and its type. */
void exposition_head(FILE *out, const char *name, const char *type, const char *help);

/* A label's value, in quotes. Bytes that are no UTF-8, for which all would be refused, and control characters stand there as \xNN. */
void exposition_value(FILE *out, const char *value);

/* A metric of that type with all that belongs to it, in the unit that is told. */
void exposition_histogram(FILE *out, const char *name, const char *help, const struct histogram *histogram);

#endif
