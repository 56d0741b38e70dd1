#ifndef DAEMON_SYSTEMD_H
#define DAEMON_SYSTEMD_H

#include <stdint.h>

#include "daemon/notify.h"
#include "daemon/parts.h"

#define SYSTEMD_STATUS_SIZE 512

/*
 * The daemon's state as reported to the service manager: readiness, status, reload, stop and watchdog
 * (sd_notify(3)). Without a service manager nothing is sent, but stalled threads are still detected and
 * logged. For the main thread.
 */
struct systemd {
        struct notify notify;
        int is_ready;                     /* READY=1 was sent */
        int reload_failed;                /* the last one */
        int is_stalled;                   /* a part was stalled when last checked */
        int64_t began_ms;                 /* monotonic */
        int64_t stall_ms;                 /* how long a part may make no progress */
        char status[SYSTEMD_STATUS_SIZE]; /* the last one */
};

/* Take the service manager's variables out of the environment. Call it before threads start. */
void systemd_open(struct systemd *systemd);
void systemd_close(struct systemd *systemd);

/* Return how often systemd_tick() needs to be called, in milliseconds. */
int64_t systemd_interval_ms(const struct systemd *systemd);

/*
 * Report the state of the running parts: READY=1 once, when a receiver can append or, without that role, when
 * the router is in its group; or after 15 s, since a unit that waited for Kafka would keep the machine's boot
 * from ending, and systemd from passing on a reload. WATCHDOG=1 while all parts make progress. STATUS, the
 * readiness of the parts, when it has changed.
 */
void systemd_tick(struct systemd *systemd, struct parts *parts);

/* Report that a reload begins, and how it ended. */
void systemd_reloading(struct systemd *systemd);
void systemd_reloaded(struct systemd *systemd, int succeeded);

/* Report that the daemon begins to stop. */
void systemd_stopping(struct systemd *systemd);

/*
 * Report the progress of the parts while they stop, every second. The stop timeout is extended while the
 * parts make progress and can finish; not while Kafka does not answer the router, or a commit takes too long.
 * A daemon that is killed then loses nothing.
 */
void systemd_drain(struct systemd *systemd, const struct parts *parts);

/* Report why the daemon does not start, or ends. */
void systemd_failed(struct systemd *systemd, const char *reason);

#endif
