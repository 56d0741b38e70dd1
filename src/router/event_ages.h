#ifndef ROUTER_EVENT_AGES_H
#define ROUTER_EVENT_AGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "ops/metrics.h"

/* When the events of an open transaction were signed, until it is known when it was committed. Begin with zeros. */
struct event_ages {
        struct event_ages_run {
                int64_t signed_s; /* since the epoch */
                uint64_t n;       /* events, one after the other */
        } * runs;
        size_t n;
        size_t size;
};

/* One more event; -1, not known when, is passed over. Returns 0, or -1 when memory fails. */
int event_ages_add(struct event_ages *ages, int64_t signed_s) MUST_CHECK;

/* They were committed at that time (since the epoch): tell how old they were then. A time to come counts as none. */
void event_ages_observe(const struct event_ages *ages, int64_t now_ms, struct metrics *metrics);

/* Forget them, for the next transaction; for good. */
void event_ages_reset(struct event_ages *ages);
void event_ages_free(struct event_ages *ages);

#endif
