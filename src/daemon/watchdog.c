#include "daemon/watchdog.h"

#include <inttypes.h>

#include "base/log.h"

#define USUAL_LIMIT_MS 30000
#define LEAST_LIMIT_MS 1500 /* a lane's loop turns twice a second, if not more often */

void
watchdog_open(struct watchdog *watchdog, int64_t within_us)
{
        *watchdog = (struct watchdog){.limit_ms = within_us == 0 ? USUAL_LIMIT_MS : within_us / 2000};
        if (watchdog->limit_ms < LEAST_LIMIT_MS)
                watchdog->limit_ms = LEAST_LIMIT_MS;
}

int
watchdog_look(struct watchdog *watchdog, const struct parts *parts)
{
        char reason[HEALTH_REASON_SIZE];
        int is_stuck = !parts_are_alive(parts, watchdog->limit_ms, reason);

        if (is_stuck && !watchdog->is_stuck)
                log_error(
                    "%s: the service manager is not told that all is well any more longer_than_ms=%" PRId64,
                    reason, watchdog->limit_ms);
        else if (!is_stuck && watchdog->is_stuck)
                log_notice("what stood still goes on again");
        watchdog->is_stuck = is_stuck;
        return !is_stuck;
}
