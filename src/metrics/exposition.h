#ifndef METRICS_EXPOSITION_H
#define METRICS_EXPOSITION_H

#include <stdio.h>

#include "metrics/histogram.h"

/* The Prometheus text format, version 0.0.4. */

/* Write the HELP and TYPE lines of a metric. */
void exposition_head(FILE *out, const char *name, const char *type, const char *help);

/*
 * Write the value of a label in quotes. Control characters and bytes that are not UTF-8, for which Prometheus
 * would refuse the whole text, become \xNN.
 */
void exposition_value(FILE *out, const char *value);

/* Write a whole histogram, with its bounds and sum in the exported unit. */
void exposition_histogram(FILE *out, const char *name, const char *help, const struct histogram *histogram);

#endif
