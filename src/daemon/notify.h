#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"

/* The notification socket of the service manager (sd_notify(3)). A plain value, for one thread. */
struct notify {
        int fd; /* -1: no service manager asked for notifications, and none are sent */
        struct sockaddr_un address;
        socklen_t len;
        /* WATCHDOG=1 is due at least this often; 0: it is not wanted. */
        int64_t watchdog_us;
};

/*
 * Open the socket that NOTIFY_SOCKET names, and remove NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the
 * environment, so that no child inherits them. Invalid values are logged and ignored. Call it before threads
 * start.
 */
void notify_open(struct notify *notify);

/*
 * Send assignments, one a line, such as "READY=1\nSTATUS=receiving". Blocks for at most a second. Failures
 * are logged, at most once a second.
 */
void notify_send(struct notify *notify, const char *format, ...) PRINTF_LIKE(2, 3);

void notify_close(struct notify *notify);

#endif
