#ifndef ROUTER_AGES_H
#define ROUTER_AGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "metrics/metrics.h"

/* When the events of an open transaction were signed, until it is known when it was committed. Begin with zeros. */
struct ages {
        struct ages_run {
                int64_t signed_s; /* since the epoch */
                uint64_t n;       /* events, one after the other */
        } * runs;
        size_t n;
        size_t size;
};

/* One more event; -1, not known when, is passed over. Returns 0, or -1 when memory fails. */
int ages_add(struct ages *ages, int64_t signed_s) MUST_CHECK;

/* They were committed at that time (since the epoch): tell how old they were then. A time to come counts as none. */
void ages_observe(const struct ages *ages, int64_t now_ms, struct metrics *metrics);

/* Forget them, for the next transaction; for good. */
void ages_reset(struct ages *ages);
void ages_free(struct ages *ages);

#endif
