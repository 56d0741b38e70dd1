#include "daemon/clock_guard.h"

#include <inttypes.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"

#define STEP_MAX_MS 5000 /* well below every time-out towards Kafka */

void
clock_guard(struct clock_watch *clock)
{
        int64_t step_ms = clock_take_step(clock);

        if (step_ms > STEP_MAX_MS)
                log_warning("the clock was set forward by_ms=%" PRId64, step_ms);
        if (step_ms >= -STEP_MAX_MS)
                return;
        log_error("the clock was set back, and Kafka's client could stand still for that long: ending at "
                  "once, to be started again by_ms=%" PRId64 " status=%d",
                  -step_ms, EX_TEMPFAIL);
        _exit(EX_TEMPFAIL);
}
