#include "daemon/systemd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_MS 1000
#define STATUS_INTERVAL_MS 2000
/* How long the start waits for the parts to work; below TimeoutStartSec, which is 90 s by default. */
#define START_WAIT_MS 15000
#define EXTEND_INTERVAL_MS 5000
#define EXTEND_US 30000000
/* Without a watchdog. With one, it is half of the time after which the watchdog would act. */
#define DEFAULT_STALL_MS 30000
/* The loop of a lane turns at least twice a second. */
#define MIN_STALL_MS 1500

void
systemd_open(struct systemd *systemd)
{
        memset(systemd, 0, sizeof(*systemd));
        notify_open(&systemd->notify);
        systemd->began_ms = clock_monotonic_ms();
        systemd->stall_ms =
            systemd->notify.watchdog_us == 0 ? DEFAULT_STALL_MS : systemd->notify.watchdog_us / 2000;
        if (systemd->stall_ms < MIN_STALL_MS)
                systemd->stall_ms = MIN_STALL_MS;
}

void
systemd_close(struct systemd *systemd)
{
        notify_close(&systemd->notify);
}

int64_t
systemd_interval_ms(const struct systemd *systemd)
{
        int64_t third_ms = systemd->notify.watchdog_us / 3000;

        return third_ms == 0 || third_ms > TICK_MS ? TICK_MS : third_ms;
}

/* Return whether all parts make progress. Log when that changes. */
static int
check_progress(struct systemd *systemd, const struct parts *parts)
{
        char reason[HEALTH_REASON_SIZE], quoted[LOG_QUOTED_SIZE];
        int is_stalled = !parts_are_alive(parts, systemd->stall_ms, reason);

        if (is_stalled && !systemd->is_stalled)
                log_error("stalled; watchdog notifications suspended reason=%s longer_than_ms=%" PRId64,
                          log_quote(reason, quoted), systemd->stall_ms);
        else if (!is_stalled && systemd->is_stalled)
                log_notice("no longer stalled; watchdog notifications resumed");
        systemd->is_stalled = is_stalled;
        return !is_stalled;
}

static void
send_status(struct systemd *systemd, const char *status)
{
        int64_t now = clock_monotonic_ms();

        if (strcmp(status, systemd->status) == 0 ||
            (systemd->status_ms != 0 && now - systemd->status_ms < STATUS_INTERVAL_MS))
                return;
        notify_send(&systemd->notify, "STATUS=%s", status);
        (void)snprintf(systemd->status, SYSTEMD_STATUS_SIZE, "%s", status);
        systemd->status_ms = now;
}

static void
extend_timeout(struct systemd *systemd)
{
        int64_t now = clock_monotonic_ms();

        if (systemd->extended_ms != 0 && now - systemd->extended_ms < EXTEND_INTERVAL_MS)
                return;
        notify_send(&systemd->notify, "EXTEND_TIMEOUT_USEC=%d", EXTEND_US);
        systemd->extended_ms = now;
}

static void
send_ready(struct systemd *systemd, const char *status)
{
        systemd->is_ready = 1;
        notify_send(&systemd->notify, "READY=1\nSTATUS=%s", status);
        (void)snprintf(systemd->status, SYSTEMD_STATUS_SIZE, "%s", status);
        systemd->status_ms = clock_monotonic_ms();
}

static void
send_watchdog(struct systemd *systemd)
{
        const int64_t us = systemd->notify.watchdog_us, now = clock_monotonic_ms();

        if (us == 0 || now - systemd->watchdog_ms < us / 4000)
                return;
        notify_send(&systemd->notify, "WATCHDOG=1");
        systemd->watchdog_ms = now;
}

void
systemd_tick(struct systemd *systemd, struct parts *parts)
{
        int is_alive = check_progress(systemd, parts);
        char status[SYSTEMD_STATUS_SIZE];

        if (!notify_is_wanted(&systemd->notify))
                return;
        if (is_alive)
                send_watchdog(systemd);
        parts_describe(parts, status, sizeof(status));
        if (systemd->reload_failed)
                (void)snprintf(status + strlen(status), sizeof(status) - strlen(status),
                               "; the last reload failed, see the log");
        if (!systemd->is_ready && (parts_can_serve(parts) ||
                                   (is_alive && clock_monotonic_ms() - systemd->began_ms >= START_WAIT_MS)))
                send_ready(systemd, status);
        else
                send_status(systemd, status);
}

/* Before READY=1, RELOADING=1 would have to be followed by an early READY=1. */
void
systemd_reloading(struct systemd *systemd)
{
        if (systemd->is_ready)
                notify_send(&systemd->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=reloading",
                            clock_monotonic_us());
}

void
systemd_reloaded(struct systemd *systemd, int succeeded)
{
        systemd->reload_failed = !succeeded;
        /* Send the next status at once. */
        systemd->status[0] = '\0';
        systemd->status_ms = 0;
        if (systemd->is_ready)
                notify_send(&systemd->notify, "READY=1");
}

void
systemd_stopping(struct systemd *systemd)
{
        notify_send(&systemd->notify, "STOPPING=1\nSTATUS=stopping");
        systemd->extended_ms = 0;
        systemd->status_ms = 0;
}

void
systemd_drain(struct systemd *systemd, const struct parts *parts)
{
        int is_alive = check_progress(systemd, parts);
        char status[SYSTEMD_STATUS_SIZE];

        if (!notify_is_wanted(&systemd->notify))
                return;
        (void)snprintf(status, sizeof(status), "stopping: %s", parts_stopping(parts));
        send_status(systemd, status);
        if (is_alive)
                send_watchdog(systemd);
        if (is_alive && parts_stop_can_end(parts))
                extend_timeout(systemd);
}

void
systemd_failed(struct systemd *systemd, const char *reason)
{
        notify_send(&systemd->notify, "STATUS=cannot %s: %s", systemd->is_ready ? "continue" : "start",
                    reason);
}
