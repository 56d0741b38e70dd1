#include "base/heartbeat.h"

#include "base/clock.h"

void
heartbeat_beat(struct heartbeat *heartbeat)
{
        atomic_store_explicit(&heartbeat->beat_ms, clock_monotonic_ms(), memory_order_relaxed);
        atomic_store_explicit(&heartbeat->is_waiting, 0, memory_order_relaxed);
}

void
heartbeat_wait(struct heartbeat *heartbeat)
{
        atomic_store_explicit(&heartbeat->is_waiting, 1, memory_order_relaxed);
}

int64_t
heartbeat_age_ms(struct heartbeat *heartbeat)
{
        int64_t beat_ms = atomic_load_explicit(&heartbeat->beat_ms, memory_order_relaxed);

        return beat_ms == 0 ? 0 : clock_monotonic_ms() - beat_ms;
}

int
heartbeat_is_alive(struct heartbeat *heartbeat, int64_t limit_ms)
{
        return atomic_load_explicit(&heartbeat->is_waiting, memory_order_relaxed) ||
               heartbeat_age_ms(heartbeat) <= limit_ms;
}
