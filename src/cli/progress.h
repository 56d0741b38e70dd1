#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "kafka/range.h"

#define PROGRESS_WHAT_SIZE 80

/* A line on stderr that tells a person how far a work is; nothing where stderr is no terminal. */
struct progress {
        char what[PROGRESS_WHAT_SIZE];
        uint64_t n;
        uint64_t n_all;
        int64_t shown_ms;
        int is_shown;
};

/* Begin a work of so many steps, about: `reading deliveries`. */
void progress_begin(struct progress *progress, const char *what, uint64_t n_all);

/* One more is done. */
void progress_step(struct progress *progress);

/* Take the line away. */
void progress_end(struct progress *progress);

/* How many records there are in ranges, about: not every offset is a record. */
uint64_t progress_count(const struct range *ranges, size_t n);

#endif
