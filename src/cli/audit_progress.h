#ifndef CLI_AUDIT_PROGRESS_H
#define CLI_AUDIT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "kafka/range.h"

/* A line on stderr that tells a person how far a reading is; nothing where stderr is no terminal. */
struct audit_progress {
        const char *what;
        size_t pass;
        uint64_t n;
        uint64_t n_all; /* about: offsets are not all records */
        int64_t shown_ms;
        int is_shown;
};

/* Begin to read ranges, in the pass after n_passes others. */
void audit_progress_begin(struct audit_progress *progress, const char *what, size_t n_passes,
                          const struct range *ranges, size_t n);

/* One more record has been read. */
void audit_progress_step(struct audit_progress *progress);

/* Take the line away. */
void audit_progress_end(struct audit_progress *progress);

#endif
