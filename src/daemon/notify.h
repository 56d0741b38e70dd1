#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"

/*
 * The service manager's notification socket, spoken to as sd_notify(3) describes. A plain value, for one thread. Where no
 * manager asked for notifications, nothing is sent.
 */
struct notify {
        int fd; /* -1: nobody listens */
        struct sockaddr_un address;
        socklen_t len;
        int64_t watchdog_us; /* within which WATCHDOG=1 is wanted each time; 0: not wanted */
};

/*
 * Take NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child has them. What cannot be used
 * is logged, and nothing sent then. Call it before threads start.
 */
void notify_open(struct notify *notify);

/* Whether somebody listens. */
int notify_is_wanted(const struct notify *notify);

/*
 * Send assignments, one a line, such as "READY=1\nSTATUS=receiving". Waits a second at most; that it failed is logged, at
 * most once a second.
 */
void notify_send(struct notify *notify, const char *format, ...) PRINTF_LIKE(2, 3);

void notify_close(struct notify *notify);

#endif
