#ifndef OPS_EXPOSITION_H
#define OPS_EXPOSITION_H

#include <stdio.h>

/* Writing the Prometheus text format, version 0.0.4. */

/* What comes before the samples of a metric: its help and its type. */
void exposition_head(FILE *out, const char *name, const char *type, const char *help);

/* A label's value, in quotes. */
void exposition_value(FILE *out, const char *value);

#endif
