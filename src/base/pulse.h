#ifndef BASE_PULSE_H
#define BASE_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A thread's sign of life: it beats on each turn of its loop, and others look how long ago that was. A thread that says
 * that it waits counts as alive, however long it waits. Zeros are a pulse that has not begun, and is taken for alive.
 */
struct pulse {
        atomic_int_fast64_t beat_ms; /* monotonic; 0: none yet */
        atomic_int is_waiting;
};

/* The thread lives, and waits no more. */
void pulse_beat(struct pulse *pulse);

/* From here to its next beat the thread waits for something that may take any time. */
void pulse_wait(struct pulse *pulse);

/* Milliseconds since the last beat, whether it waits or not. From any thread, as the next one. */
int64_t pulse_age_ms(struct pulse *pulse);

/* Whether it has beaten within limit_ms, or waits. */
int pulse_is_alive(struct pulse *pulse, int64_t limit_ms);

#endif
