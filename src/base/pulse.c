#include "base/pulse.h"

#include "base/clock.h"

void
pulse_beat(struct pulse *pulse)
{
        atomic_store_explicit(&pulse->beat_ms, clock_monotonic_ms(), memory_order_relaxed);
        atomic_store_explicit(&pulse->is_waiting, 0, memory_order_relaxed);
}

void
pulse_wait(struct pulse *pulse)
{
        atomic_store_explicit(&pulse->is_waiting, 1, memory_order_relaxed);
}

int64_t
pulse_age_ms(struct pulse *pulse)
{
        int64_t beat_ms = atomic_load_explicit(&pulse->beat_ms, memory_order_relaxed);

        return beat_ms == 0 ? 0 : clock_monotonic_ms() - beat_ms;
}

int
pulse_is_alive(struct pulse *pulse, int64_t limit_ms)
{
        return atomic_load_explicit(&pulse->is_waiting, memory_order_relaxed) ||
               pulse_age_ms(pulse) <= limit_ms;
}
