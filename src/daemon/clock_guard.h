#ifndef DAEMON_CLOCK_GUARD_H
#define DAEMON_CLOCK_GUARD_H

#include "base/clock.h"

/*
 * Kafka's client waits by the clock that can be set (C11's cnd_timedwait; librdkafka 2.12 still does): when that is set
 * back, what its threads have to do by the hour, heartbeats and retries among it, is not done for as long, and no call
 * wakes them all. To begin anew is safe at any moment. Signed timestamps are held against this clock, so steps are told.
 *
 * Call it every second: it logs that the clock was set forward, and ends the process with EX_TEMPFAIL when it was set back.
 */
void clock_guard(struct clock_watch *clock);

#endif
