#include "daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "daemon/clock_guard.h"
#include "daemon/parts.h"
#include "ops/reload.h"

#define TICK_MS 1000

/* The main thread: it sees to signals, the admin endpoint and readiness. */
struct daemon {
        struct parts parts;
        struct event_base *base;
        struct event *signals[3];
        struct event *changes; /* other threads write to the pipe when something has changed */
        struct event *tick;
        struct clock_watch clock;
        int pipe[2];
        int exit_status;
};

/* Called from the probe's and the router's threads. */
static void
tell_main_thread(void *arg)
{
        const struct daemon *daemon = arg;
        ssize_t written = write(daemon->pipe[1], "c", 1);

        (void)written;
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
        if (status == 0)
                return;
        if (daemon->exit_status == 0)
                daemon->exit_status = status;
        (void)event_base_loopbreak(daemon->base);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        clock_guard(&daemon->clock);
        parts_tick(&daemon->parts);
}

static void
on_stop(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)what;
        log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        (void)event_base_loopbreak(daemon->base);
}

static void
on_reload(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        parts_renew(&daemon->parts);
}

static void
mask_reload(int how)
{
        sigset_t reload;

        (void)sigemptyset(&reload);
        (void)sigaddset(&reload, SIGHUP);
        (void)pthread_sigmask(how, &reload, NULL);
}

void
daemon_hold_reload(void)
{
        mask_reload(SIG_BLOCK);
}

static int
open_events(struct daemon *daemon, struct error *error)
{
        const struct timeval interval = {TICK_MS / 1000, TICK_MS % 1000 * 1000};

        (void)signal(SIGPIPE, SIG_IGN);
        daemon->base = event_base_new();
        if (daemon->base == NULL || pipe2(daemon->pipe, O_NONBLOCK | O_CLOEXEC) != 0)
                return error_set(error, "the event loop does not start");
        daemon->signals[0] = evsignal_new(daemon->base, SIGTERM, on_stop, daemon);
        daemon->signals[1] = evsignal_new(daemon->base, SIGINT, on_stop, daemon);
        daemon->signals[2] = evsignal_new(daemon->base, SIGHUP, on_reload, daemon);
        daemon->changes = event_new(daemon->base, daemon->pipe[0], EV_READ | EV_PERSIST, on_changes, daemon);
        daemon->tick = event_new(daemon->base, -1, EV_PERSIST, on_tick, daemon);
        if (daemon->signals[0] == NULL || daemon->signals[1] == NULL || daemon->signals[2] == NULL ||
            daemon->changes == NULL || daemon->tick == NULL)
                return error_set(error, "out of memory");
        for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++)
                (void)event_add(daemon->signals[i], NULL);
        mask_reload(SIG_UNBLOCK);
        (void)event_add(daemon->changes, NULL);
        (void)event_add(daemon->tick, &interval);
        (void)clock_take_step(&daemon->clock);
        return 0;
}

static void
close_events(struct daemon *daemon)
{
        daemon_hold_reload();
        for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++) {
                if (daemon->signals[i] != NULL)
                        event_free(daemon->signals[i]);
        }
        if (daemon->changes != NULL)
                event_free(daemon->changes);
        if (daemon->tick != NULL)
                event_free(daemon->tick);
        if (daemon->base != NULL)
                event_base_free(daemon->base);
        if (daemon->pipe[0] >= 0) {
                (void)close(daemon->pipe[0]);
                (void)close(daemon->pipe[1]);
        }
}

int
daemon_run(const struct config *config)
{
        struct daemon daemon = {.pipe = {-1, -1}};
        struct error error;

        log_notice("starting version=%s instance=%s file=%s", PACKAGE_VERSION, config->instance,
                   config->file);
        reload_log_certificate(config);
        if (open_events(&daemon, &error) == 0 &&
            parts_open(&daemon.parts, config, daemon.base, tell_main_thread, &daemon, &error) == 0) {
                tell_main_thread(&daemon); /* what has changed before the parts were there */
                (void)event_base_dispatch(daemon.base);
        } else {
                log_error("cannot start: %s", error.text);
                daemon.exit_status = EX_OSERR;
        }
        parts_close(&daemon.parts);
        close_events(&daemon);
        log_notice("stopped status=%d", daemon.exit_status);
        return daemon.exit_status;
}
