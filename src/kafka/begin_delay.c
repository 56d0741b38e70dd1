#include "kafka/begin_delay.h"

#include "base/clock.h"

#define WAIT_MIN_MS 4
#define WAIT_MAX_MS 20 /* librdkafka's own retry delay */
#define LONGER_MS 4
#define IN_TIME_ENOUGH 64

void
begin_delay_init(struct begin_delay *delay)
{
        *delay = (struct begin_delay){.wait_ms = WAIT_MIN_MS};
}

void
begin_delay_wait(struct begin_delay *delay)
{
        int64_t left_ms;

        if (delay->committed_ms == 0)
                return;
        left_ms = delay->committed_ms + delay->wait_ms - clock_monotonic_ms();
        delay->was_awaited = left_ms > 0;
        clock_sleep_ms(left_ms);
}

void
begin_delay_begun(struct begin_delay *delay)
{
        atomic_store(&delay->registered_ms, 0);
        atomic_store(&delay->has_produced, 0);
        atomic_store(&delay->was_early, 0);
}

/* Adapt the delay. Only a transaction that began right after the wait shows whether it was long enough. */
void
begin_delay_committed(struct begin_delay *delay)
{
        delay->committed_ms = clock_monotonic_ms();
        if (!delay->was_awaited)
                return;
        delay->was_awaited = 0;
        if (atomic_load(&delay->was_early)) {
                delay->n_in_time = 0;
                delay->wait_ms += LONGER_MS;
                if (delay->wait_ms > WAIT_MAX_MS)
                        delay->wait_ms = WAIT_MAX_MS;
        } else if (++delay->n_in_time >= IN_TIME_ENOUGH) {
                delay->n_in_time = 0;
                if (delay->wait_ms > WAIT_MIN_MS)
                        delay->wait_ms--;
        }
}

/*
 * When the first answer was CONCURRENT_TRANSACTIONS, the second comes this late, before any record was
 * produced.
 */
void
begin_delay_partitions_added(struct begin_delay *delay)
{
        int64_t first_ms = atomic_load(&delay->registered_ms), now_ms = clock_monotonic_ms();

        if (first_ms == 0)
                atomic_store(&delay->registered_ms, now_ms);
        else if (now_ms - first_ms >= WAIT_MAX_MS && !atomic_load(&delay->has_produced))
                atomic_store(&delay->was_early, 1);
}

void
begin_delay_produced(struct begin_delay *delay)
{
        atomic_store(&delay->has_produced, 1);
}
