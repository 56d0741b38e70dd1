#ifndef DAEMON_WATCHDOG_H
#define DAEMON_WATCHDOG_H

#include <stdint.h>

#include "base/compiler.h"
#include "daemon/parts.h"

/* Looks whether the parts live: that the loops of the receiver's lanes and of the router turn. A plain value. */
struct watchdog {
        int64_t limit_ms; /* so long a part may stand still */
        int is_stuck;     /* when last looked at, one did */
};

/* within_us: what the service manager allows, of which a part may stand still for half; 0: it does not watch. */
void watchdog_open(struct watchdog *watchdog, int64_t within_us);

/* Returns whether all parts live. That one no longer does is logged with its name, once, and that it does again. */
int watchdog_look(struct watchdog *watchdog, const struct parts *parts) MUST_CHECK;

#endif
