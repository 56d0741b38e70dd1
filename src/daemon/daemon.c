#include "daemon/daemon.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/log_flood.h"
#include "base/pool.h"
#include "daemon/clock_guard.h"
#include "daemon/parts.h"
#include "daemon/reload.h"
#include "daemon/service.h"
#include "daemon/status.h"

#define DRAIN_MS 20
#define PATIENCE_MS 10000 /* with stopping, before the log tells what it waits for */

/* The main thread: it sees to signals, the admin endpoint, readiness, and what the service manager is told. */
struct daemon {
        struct parts parts;
        struct service service;
        struct activation activation;
        struct event_base *base;
        struct event *signals;
        struct event *changes; /* other threads write to the pipe when something has changed */
        struct event *tick;
        struct event *drain; /* while stopping */
        struct clock_watch clock;
        int pipe[2];
        int signal_fd;
        int reload_again; /* SIGHUP came during a reload */
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

/* The file is read, and Kafka asked, by another thread: on_changes() sees that end. */
static void
begin_reload(struct daemon *daemon)
{
        service_reloading(&daemon->service);
        parts_begin_renewal(&daemon->parts, tell_main_thread, daemon);
}

static void
end_reload(struct daemon *daemon)
{
        service_reloaded(&daemon->service, parts_end_renewal(&daemon->parts));
        service_tick(&daemon->service, &daemon->parts);
        if (daemon->reload_again)
                begin_reload(daemon);
        daemon->reload_again = 0;
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
        if (daemon->stopping_since_ms == 0 && parts_renewal(&daemon->parts) == RELOAD_DONE)
                end_reload(daemon);
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
stop(struct daemon *daemon, uint32_t number)
{
        if (daemon->stopping_since_ms == 0)
                log_notice("stopping signal=%s", number == SIGTERM ? "SIGTERM" : "SIGINT");
        begin_to_stop(daemon, 0);
}

/* However many SIGHUP come during a reload, one more follows it: the file may have changed since it was read. */
static void
reload(struct daemon *daemon)
{
        if (daemon->stopping_since_ms != 0)
                return;
        if (parts_renewal(&daemon->parts) == RELOAD_NONE)
                begin_reload(daemon);
        else
                daemon->reload_again = 1;
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;
        struct signalfd_siginfo info;

        (void)what;
        while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
                if (info.ssi_signo == SIGHUP)
                        reload(daemon);
                else if (info.ssi_signo == SIGUSR1)
                        status_log(&daemon->parts);
                else
                        stop(daemon, info.ssi_signo);
        }
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

static void
list_signals(sigset_t *set)
{
        (void)sigemptyset(set);
        for (size_t i = 0; i < ARRAY_LEN(signals); i++)
                (void)sigaddset(set, signals[i]);
}

/*
 * They stay blocked in all threads and are read from a descriptor. With handlers they would interrupt librdkafka's threads,
 * and its mock broker's thread ends, with a mutex locked, when its poll() is interrupted (2.0.2). What comes after the event
 * loop has ended is never delivered: a second SIGTERM does not turn an orderly end into another one.
 */
void
daemon_hold_signals(void)
{
        sigset_t set;

        list_signals(&set);
        (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        /* One that is ignored, as nohup has it, would not be read either. */
        for (size_t i = 0; i < ARRAY_LEN(signals); i++)
                (void)signal(signals[i], SIG_DFL);
}

static int
open_signals(struct daemon *daemon)
{
        sigset_t set;

        list_signals(&set);
        daemon->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        return daemon->signal_fd < 0 ? -1 : 0;
}

/* libevent would write to stderr in a form of its own. What it calls an error is its last word: it ends the process. */
static void
on_libevent_message(int severity, const char *message)
{
        static struct log_flood flood;
        char quoted[LOG_QUOTED_SIZE];

        if (severity == EVENT_LOG_ERR)
                log_error("libevent gives up reason=%s", log_quote(message, quoted));
        else if (severity == EVENT_LOG_WARN)
                log_flood(&flood, LOG_LEVEL_WARNING, "libevent says so reason=%s",
                          log_quote(message, quoted));
}

/* libevent would call exit(), which pulls OpenSSL away under other threads. */
static void
on_libevent_failure(int error)
{
        (void)error;
        _exit(EX_SOFTWARE);
}

static int
open_events(struct daemon *daemon, struct error *error)
{
        int64_t interval_ms = service_interval_ms(&daemon->service);
        const struct timeval interval = {interval_ms / 1000, interval_ms % 1000 * 1000};

        event_set_log_callback(on_libevent_message);
        event_set_fatal_callback(on_libevent_failure);
        event_set_mem_functions(pool_alloc, pool_resize, pool_free);
        daemon->base = event_base_new();
        if (daemon->base == NULL || pipe2(daemon->pipe, O_NONBLOCK | O_CLOEXEC) != 0 ||
            open_signals(daemon) != 0)
                return error_set(error, "the event loop does not start");
        daemon->signals = event_new(daemon->base, daemon->signal_fd, EV_READ | EV_PERSIST, on_signal, daemon);
        daemon->changes = event_new(daemon->base, daemon->pipe[0], EV_READ | EV_PERSIST, on_changes, daemon);
        daemon->tick = event_new(daemon->base, -1, EV_PERSIST, on_tick, daemon);
        daemon->drain = event_new(daemon->base, -1, EV_PERSIST, on_drain, daemon);
        if (daemon->signals == NULL || daemon->changes == NULL || daemon->tick == NULL ||
            daemon->drain == NULL)
                return error_set(error, "out of memory");
        (void)event_add(daemon->signals, NULL);
        (void)event_add(daemon->changes, NULL);
        (void)event_add(daemon->tick, &interval);
        (void)clock_take_step(&daemon->clock);
        return 0;
}

static void
close_events(struct daemon *daemon)
{
        if (daemon->signals != NULL)
                event_free(daemon->signals);
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
        if (daemon->signal_fd >= 0)
                (void)close(daemon->signal_fd);
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

/* No core has the secrets in it, and nobody but root may trace the process. LeakSanitizer traces its own. */
static void
protect_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

int
daemon_run(const struct config *config)
{
        struct daemon daemon = {.pipe = {-1, -1}, .signal_fd = -1};
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        protect_memory();
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
