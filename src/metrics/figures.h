#ifndef METRICS_FIGURES_H
#define METRICS_FIGURES_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "metrics/histogram.h"

/*
 * Writes figures either as /metrics, in the Prometheus text format 0.0.4, or as /status, in JSON. Each figure
 * is named once, by a struct figure, and one pass over the metrics writes either document.
 */
struct figures {
        FILE *text;               /* of /metrics, or NULL */
        struct json_writer *json; /* of /status, or NULL */
};

struct figure {
        const char *name; /* in /metrics; NULL: not there */
        const char *type; /* counter or gauge */
        const char *help;
        const char *member; /* of /status; NULL: not there */
};

/* Write what stands before the samples of a figure in /metrics: once for all of them. */
void figures_head(struct figures *to, const struct figure *figure);

/* Write a figure that has one value: a count, or whether it is so. */
void figures_count(struct figures *to, const struct figure *figure, uint64_t value);
void figures_flag(struct figures *to, const struct figure *figure, int value);

/* Write a moment since the epoch. A moment of 0 is null in /status. */
void figures_moment(struct figures *to, const struct figure *figure, uint64_t ms);

/*
 * Write the value of a figure that has labels: an array of names and values, ended by NULL. In /status, the
 * last value is the name of the member. The first sample comes after figures_head().
 */
void figures_sample(struct figures *to, const struct figure *figure, const char *const *labels,
                    uint64_t value);

/* The labels of a sample. */
#define FIGURE_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Write the beginning of a sample in /metrics, up to its value. */
void figures_begin_sample(struct figures *to, const char *name, const char *const *labels);

/* Write a histogram: its buckets in /metrics; the number of values and two quantiles in /status. */
void figures_histogram(struct figures *to, const struct figure *figure, const struct histogram *histogram);

/*
 * Write what only /status has: an object or array around other members, a text, a number, a time in seconds
 * since the epoch (0: null), a fraction. In a text, control characters and bytes that are not UTF-8 become
 * \xNN, as in labels; figures_copy() returns such a text, to be freed.
 */
char *figures_copy(const char *text);
void figures_open(struct figures *to, const char *member);
void figures_close(struct figures *to);
void figures_open_list(struct figures *to, const char *member);
void figures_close_list(struct figures *to);
void figures_text(struct figures *to, const char *member, const char *text);
void figures_number(struct figures *to, const char *member, int64_t number);
void figures_time(struct figures *to, const char *member, int64_t time_s);
void figures_fraction(struct figures *to, const char *member, double value);

#endif
