#include "daemon/daemon.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/log_flood.h"
#include "base/pool.h"
#include "daemon/clock_guard.h"
#include "daemon/parts.h"
#include "daemon/service.h"
#include "daemon/status.h"
#include "ops/reload.h"

#define DRAIN_MS 20
#define PATIENCE_MS 10000 /* with stopping, before the log tells what it waits for */

/* The main thread: it sees to signals, the admin endpoint, readiness, and what the service manager is told. */
struct daemon {
        struct parts parts;
        struct service service;
        struct activation activation;
        struct event_base *base;
        struct event *signals[4];
        struct event *reload;  /* once for all SIGHUP that have come */
        struct event *changes; /* other threads write to the pipe when something has changed */
        struct event *tick;
        struct event *drain; /* while stopping */
        struct clock_watch clock;
        int pipe[2];
        int exit_status;
        int64_t stopping_since_ms; /* monotonic; 0: it is not */
        int64_t told_ms;           /* of stopping: when the log last told of it */
};

/* Called from the probe's and the router's threads. */
static void
tell_main_thread(void *arg)
{
        const struct daemon *daemon = arg;
        ssize_t written = write(daemon->pipe[1], "c", 1);

        (void)written;
}

/* Stop all parts, while the loop goes on: on_drain() sees them end. */
static void
begin_to_stop(struct daemon *daemon, int status)
{
        const struct timeval interval = {0, DRAIN_MS * 1000};

        if (daemon->exit_status == 0)
                daemon->exit_status = status;
        if (daemon->stopping_since_ms != 0)
                return;
        daemon->stopping_since_ms = daemon->told_ms = clock_monotonic_ms();
        service_stopping(&daemon->service);
        (void)event_add(daemon->drain, &interval);
}

static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        if (parts_stop(&daemon->parts))
                (void)event_base_loopbreak(daemon->base);
}

static void
watch_stopping(struct daemon *daemon)
{
        int64_t now = clock_monotonic_ms();

        service_drain(&daemon->service, &daemon->parts);
        if (now - daemon->told_ms < PATIENCE_MS)
                return;
        daemon->told_ms = now;
        log_warning("stopping takes long doing=\"%s\" seconds=%" PRId64, parts_stopping(&daemon->parts),
                    (now - daemon->stopping_since_ms) / 1000);
}

static void
on_changes(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;
        char bytes[64];
        int status;

        (void)what;
        while (read(fd, bytes, sizeof(bytes)) > 0)
                ;
        status = parts_note_changes(&daemon->parts);
        if (status != 0)
                begin_to_stop(daemon, status);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        clock_guard(&daemon->clock);
        log_flood_tell();
        log_tell_lost();
        if (daemon->stopping_since_ms != 0) {
                watch_stopping(daemon);
                return;
        }
        parts_tick(&daemon->parts);
        service_tick(&daemon->service, &daemon->parts);
}

static void
on_stop(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)what;
        if (daemon->stopping_since_ms == 0)
                log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        begin_to_stop(daemon, 0);
}

static void
on_reload(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        if (daemon->stopping_since_ms != 0)
                return;
        service_reloading(&daemon->service);
        service_reloaded(&daemon->service, parts_renew(&daemon->parts));
        service_tick(&daemon->service, &daemon->parts);
}

/*
 * libevent calls for each signal that has come, and for all before anything else is done. One reading serves all of them;
 * more in a row, with Kafka away, would let neither SIGTERM nor a sign of life through for long.
 */
static void
on_reload_asked(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        event_active(daemon->reload, EV_TIMEOUT, 0);
}

static void
mask_orders(int how)
{
        sigset_t orders;

        (void)sigemptyset(&orders);
        (void)sigaddset(&orders, SIGHUP);
        (void)sigaddset(&orders, SIGUSR1);
        (void)pthread_sigmask(how, &orders, NULL);
}

void
daemon_hold_orders(void)
{
        mask_orders(SIG_BLOCK);
}

static void
on_status(evutil_socket_t fd, short what, void *arg)
{
        const struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        status_log(&daemon->parts);
}

/*
 * The handlers come with the event loop and go with it. What comes after them is ignored: a second SIGTERM must not turn an
 * orderly end into another one. SIGHUP and SIGUSR1 are held instead.
 */
static void
ignore_signals(void)
{
        static const int signals[] = {SIGTERM, SIGINT, SIGPIPE};

        for (size_t i = 0; i < ARRAY_LEN(signals); i++)
                (void)signal(signals[i], SIG_IGN);
}

static int
open_events(struct daemon *daemon, struct error *error)
{
        int64_t interval_ms = service_interval_ms(&daemon->service);
        const struct timeval interval = {interval_ms / 1000, interval_ms % 1000 * 1000};

        ignore_signals();
        event_set_mem_functions(pool_alloc, pool_resize, pool_free);
        daemon->base = event_base_new();
        if (daemon->base == NULL || pipe2(daemon->pipe, O_NONBLOCK | O_CLOEXEC) != 0)
                return error_set(error, "the event loop does not start");
        daemon->signals[0] = evsignal_new(daemon->base, SIGTERM, on_stop, daemon);
        daemon->signals[1] = evsignal_new(daemon->base, SIGINT, on_stop, daemon);
        daemon->signals[2] = evsignal_new(daemon->base, SIGHUP, on_reload_asked, daemon);
        daemon->signals[3] = evsignal_new(daemon->base, SIGUSR1, on_status, daemon);
        daemon->reload = event_new(daemon->base, -1, 0, on_reload, daemon);
        daemon->changes = event_new(daemon->base, daemon->pipe[0], EV_READ | EV_PERSIST, on_changes, daemon);
        daemon->tick = event_new(daemon->base, -1, EV_PERSIST, on_tick, daemon);
        daemon->drain = event_new(daemon->base, -1, EV_PERSIST, on_drain, daemon);
        if (daemon->signals[0] == NULL || daemon->signals[1] == NULL || daemon->signals[2] == NULL ||
            daemon->signals[3] == NULL || daemon->reload == NULL || daemon->changes == NULL ||
            daemon->tick == NULL || daemon->drain == NULL)
                return error_set(error, "out of memory");
        for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++)
                (void)event_add(daemon->signals[i], NULL);
        mask_orders(SIG_UNBLOCK);
        (void)event_add(daemon->changes, NULL);
        (void)event_add(daemon->tick, &interval);
        (void)clock_take_step(&daemon->clock);
        return 0;
}

static void
close_events(struct daemon *daemon)
{
        daemon_hold_orders();
        for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++) {
                if (daemon->signals[i] != NULL)
                        event_free(daemon->signals[i]);
        }
        if (daemon->reload != NULL)
                event_free(daemon->reload);
        if (daemon->changes != NULL)
                event_free(daemon->changes);
        if (daemon->tick != NULL)
                event_free(daemon->tick);
        if (daemon->drain != NULL)
                event_free(daemon->drain);
        if (daemon->base != NULL)
                event_base_free(daemon->base);
        if (daemon->pipe[0] >= 0) {
                (void)close(daemon->pipe[0]);
                (void)close(daemon->pipe[1]);
        }
}

static int
open_daemon(struct daemon *daemon, const struct config *config, struct error *error)
{
        if (activation_take(&daemon->activation, error) != 0 ||
            activation_fits(&daemon->activation, config, error) != 0)
                return EX_CONFIG;
        if (open_events(daemon, error) != 0 || parts_open(&daemon->parts, config, &daemon->activation,
                                                          daemon->base, tell_main_thread, daemon, error) != 0)
                return EX_OSERR;
        return 0;
}

int
daemon_run(const struct config *config)
{
        struct daemon daemon = {.pipe = {-1, -1}};
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        service_open(&daemon.service);
        log_set_level(config->log_level);
        log_notice("starting version=%s instance=%s file=%s", PACKAGE_VERSION, config->instance,
                   log_quote(config->file, quoted));
        reload_log_certificate(config);
        daemon.exit_status = open_daemon(&daemon, config, &error);
        if (daemon.exit_status == 0) {
                tell_main_thread(&daemon); /* what has changed before the parts were there */
                service_tick(&daemon.service, &daemon.parts);
                (void)event_base_dispatch(daemon.base);
                if (daemon.exit_status != 0)
                        service_failed(&daemon.service, "the log says why");
        } else {
                log_error("cannot start reason=%s", log_quote(error.text, quoted));
                service_failed(&daemon.service, error.text);
        }
        parts_close(&daemon.parts);
        close_events(&daemon);
        service_close(&daemon.service);
        log_flood_end_all();
        log_notice("stopped status=%d", daemon.exit_status);
        return daemon.exit_status;
}
