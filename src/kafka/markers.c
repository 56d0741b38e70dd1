#include "kafka/markers.h"

#include "base/clock.h"

#define WAIT_MIN_MS 8
#define WAIT_MAX_MS 20 /* librdkafka's own pause */
#define LONGER_MS 4
#define IN_TIME_ENOUGH 64

void
markers_init(struct markers *markers)
{
        *markers = (struct markers){.wait_ms = WAIT_MIN_MS};
}

void
markers_wait(struct markers *markers)
{
        int64_t left_ms;

        if (markers->committed_ms == 0)
                return;
        left_ms = markers->committed_ms + markers->wait_ms - clock_monotonic_ms();
        markers->was_awaited = left_ms > 0;
        clock_sleep_ms(left_ms);
}

void
markers_begin(struct markers *markers)
{
        atomic_store(&markers->registered_ms, 0);
        atomic_store(&markers->has_produced, 0);
        atomic_store(&markers->was_early, 0);
}

/* Only what was begun just after the wait tells anything of it. */
void
markers_committed(struct markers *markers)
{
        markers->committed_ms = clock_monotonic_ms();
        if (!markers->was_awaited)
                return;
        markers->was_awaited = 0;
        if (atomic_load(&markers->was_early)) {
                markers->n_in_time = 0;
                markers->wait_ms += LONGER_MS;
                if (markers->wait_ms > WAIT_MAX_MS)
                        markers->wait_ms = WAIT_MAX_MS;
        } else if (++markers->n_in_time >= IN_TIME_ENOUGH) {
                markers->n_in_time = 0;
                if (markers->wait_ms > WAIT_MIN_MS)
                        markers->wait_ms--;
        }
}

/* Partitions are added again so late, and nothing could be produced yet, when the first answer was to wait. */
void
markers_registered(struct markers *markers)
{
        int64_t first_ms = atomic_load(&markers->registered_ms), now_ms = clock_monotonic_ms();

        if (first_ms == 0)
                atomic_store(&markers->registered_ms, now_ms);
        else if (now_ms - first_ms >= WAIT_MAX_MS && !atomic_load(&markers->has_produced))
                atomic_store(&markers->was_early, 1);
}

void
markers_produced(struct markers *markers)
{
        atomic_store(&markers->has_produced, 1);
}
