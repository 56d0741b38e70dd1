#include "daemon/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define TICK_MS 1000
#define STATUS_INTERVAL_MS 2000
#define EXTEND_INTERVAL_MS 5000
#define EXTEND_US 30000000

void
service_open(struct service *service)
{
        memset(service, 0, sizeof(*service));
        notify_open(&service->notify);
        watchdog_open(&service->watchdog, service->notify.watchdog_us);
}

int64_t
service_interval_ms(const struct service *service)
{
        int64_t third_ms = service->notify.watchdog_us / 3000;

        return third_ms == 0 || third_ms > TICK_MS ? TICK_MS : third_ms;
}

/* Say how things stand, when that is news. */
static void
tell_status(struct service *service, const char *status)
{
        int64_t now = clock_monotonic_ms();

        if (strcmp(status, service->status) == 0 ||
            (service->told_ms != 0 && now - service->told_ms < STATUS_INTERVAL_MS))
                return;
        notify_send(&service->notify, "STATUS=%s", status);
        (void)snprintf(service->status, SERVICE_STATUS_SIZE, "%s", status);
        service->told_ms = now;
}

/* Ask for time to begin or to end in, and again before it runs out. */
static void
ask_for_time(struct service *service)
{
        int64_t now = clock_monotonic_ms();

        if (service->extended_ms != 0 && now - service->extended_ms < EXTEND_INTERVAL_MS)
                return;
        notify_send(&service->notify, "EXTEND_TIMEOUT_USEC=%d", EXTEND_US);
        service->extended_ms = now;
}

static void
become_ready(struct service *service, const char *status)
{
        service->is_ready = 1;
        notify_send(&service->notify, "READY=1\nSTATUS=%s", status);
        (void)snprintf(service->status, SERVICE_STATUS_SIZE, "%s", status);
        service->told_ms = clock_monotonic_ms();
}

static void
give_sign_of_life(struct service *service)
{
        int64_t now = clock_monotonic_ms();

        if (service->notify.watchdog_us == 0 || now - service->alive_ms < service->notify.watchdog_us / 4000)
                return;
        notify_send(&service->notify, "WATCHDOG=1");
        service->alive_ms = now;
}

void
service_tick(struct service *service, struct parts *parts)
{
        int is_alive = watchdog_look(&service->watchdog, parts);
        char status[SERVICE_STATUS_SIZE];

        if (!notify_is_wanted(&service->notify))
                return;
        if (is_alive)
                give_sign_of_life(service);
        parts_describe(parts, status, sizeof(status));
        if (service->reload_refused)
                (void)snprintf(status + strlen(status), sizeof(status) - strlen(status),
                               "; the last reload was refused, the log says why");
        if (!service->is_ready && parts_can_serve(parts)) {
                become_ready(service, status);
                return;
        }
        if (!service->is_ready && is_alive)
                ask_for_time(service);
        tell_status(service, status);
}

/* A service that is not ready yet is not said to be reloading: it would have to be said to be ready again. */
void
service_reloading(struct service *service)
{
        if (service->is_ready)
                notify_send(&service->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=reloading",
                            clock_monotonic_us());
}

void
service_reloaded(struct service *service, int is_taken)
{
        service->reload_refused = !is_taken;
        service->status[0] = '\0'; /* to be told anew */
        service->told_ms = 0;
        if (service->is_ready)
                notify_send(&service->notify, "READY=1");
}

void
service_stopping(struct service *service)
{
        notify_send(&service->notify, "STOPPING=1\nSTATUS=stopping");
        service->extended_ms = 0;
        service->told_ms = 0;
}

void
service_drain(struct service *service, const struct parts *parts)
{
        int is_alive = watchdog_look(&service->watchdog, parts);
        char status[SERVICE_STATUS_SIZE];

        if (!notify_is_wanted(&service->notify))
                return;
        (void)snprintf(status, sizeof(status), "stopping: %s", parts_stopping(parts));
        tell_status(service, status);
        if (is_alive)
                give_sign_of_life(service);
        if (is_alive && parts_stop_can_end(parts))
                ask_for_time(service);
}

void
service_failed(struct service *service, const char *reason)
{
        notify_send(&service->notify, "STATUS=cannot %s: %s", service->is_ready ? "go on" : "start", reason);
}

void
service_close(struct service *service)
{
        notify_close(&service->notify);
}
