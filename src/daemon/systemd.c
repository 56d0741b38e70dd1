#include "daemon/systemd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_MS 1000
/* How long the start waits for the parts to work; below TimeoutStartSec, which is 90 s by default. */
#define START_WAIT_MS 15000
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

/* Send the state of the parts, with these assignments, or when it has changed. */
static void
send_state(struct systemd *systemd, const struct parts *parts, const char *assignments)
{
        char status[SYSTEMD_STATUS_SIZE];

        (void)health_check(&parts->health, NULL, "; ", status, sizeof(status));
        if (systemd->reload_failed)
                (void)snprintf(status + strlen(status), sizeof(status) - strlen(status),
                               "; the last reload failed, see the log");
        if (*assignments == '\0' && strcmp(status, systemd->status) == 0)
                return;
        notify_send(&systemd->notify, "%sSTATUS=%s", assignments, status);
        memcpy(systemd->status, status, sizeof(status));
}

void
systemd_tick(struct systemd *systemd, struct parts *parts)
{
        int is_alive = check_progress(systemd, parts);
        int is_late = clock_monotonic_ms() - systemd->began_ms >= START_WAIT_MS;

        if (is_alive && systemd->notify.watchdog_us != 0)
                notify_send(&systemd->notify, "WATCHDOG=1");
        if (systemd->is_ready || !(parts_can_serve(parts) || (is_alive && is_late))) {
                send_state(systemd, parts, "");
                return;
        }
        systemd->is_ready = 1;
        send_state(systemd, parts, "READY=1\n");
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
        systemd->status[0] = '\0'; /* "reloading" was sent since */
        if (systemd->is_ready)
                notify_send(&systemd->notify, "READY=1");
}

void
systemd_stopping(struct systemd *systemd)
{
        notify_send(&systemd->notify, "STOPPING=1\nSTATUS=stopping");
}

void
systemd_drain(struct systemd *systemd, const struct parts *parts)
{
        if (!check_progress(systemd, parts))
                return;
        if (systemd->notify.watchdog_us != 0)
                notify_send(&systemd->notify, "WATCHDOG=1");
        if (parts_stop_can_end(parts))
                notify_send(&systemd->notify, "EXTEND_TIMEOUT_USEC=%d", EXTEND_US);
}

void
systemd_failed(struct systemd *systemd, const char *reason)
{
        notify_send(&systemd->notify, "STATUS=cannot %s: %s", systemd->is_ready ? "continue" : "start",
                    reason);
}
