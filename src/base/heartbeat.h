#ifndef BASE_HEARTBEAT_H
#define BASE_HEARTBEAT_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A thread's sign of life. The thread beats on each turn of its loop; other threads check when it last did. A
 * thread that declares a wait counts as alive however long the wait takes. Zero-initialise it: before the
 * first beat a thread counts as alive.
 */
struct heartbeat {
        atomic_int_fast64_t beat_ms; /* monotonic; 0: none yet */
        atomic_int is_waiting;
};

/* Record that the thread is alive, and end its wait. */
void heartbeat_beat(struct heartbeat *heartbeat);

/* Declare that, until its next beat, the thread waits for something that may take any time. */
void heartbeat_wait(struct heartbeat *heartbeat);

/* Return the milliseconds since the last beat, waiting or not; 0 before the first. Any thread may call it. */
int64_t heartbeat_age_ms(struct heartbeat *heartbeat);

/* Return whether the thread is waiting or has beaten within limit_ms. Any thread may call it. */
int heartbeat_is_alive(struct heartbeat *heartbeat, int64_t limit_ms);

#endif
