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

#include "base/clock.h"
#include "base/log.h"
#include "base/log_flood.h"
#include "base/pool.h"
#include "daemon/parts.h"
#include "daemon/reload.h"
#include "daemon/systemd.h"
#include "http/listen_check.h"

#define DRAIN_MS 20
/* How often a slow shutdown is logged. */
#define SLOW_STOP_MS 10000
/* Steps of the clock that are ignored; well below every timeout towards Kafka. */
#define CLOCK_STEP_MS 5000

/*
 * The main thread: signals, reloads, the admin endpoint, readiness, and notifications to the service manager.
 */
struct daemon {
        struct parts parts;
        struct systemd systemd;
        struct activation activation;
        struct event_base *base;
        struct event *signals;
        struct event *changes; /* readable pipe: another thread has a change for parts_note_changes() */
        struct event *tick;
        struct event *drain;    /* while stopping */
        int64_t clock_ahead_ms; /* see read_clocks() */
        int pipe[2];
        int signal_fd;
        int reload_again; /* SIGHUP arrived during a reload */
        int exit_status;
        int64_t stopping_since_ms; /* monotonic; 0: running */
        int64_t slow_logged_ms;    /* monotonic; of the last log line about a slow shutdown */
};

/* Wake the main thread for on_changes(). Called from the threads of the probe, the router and a reload. */
static void
wake_main_thread(void *arg)
{
        const struct daemon *daemon = arg;
        ssize_t written = write(daemon->pipe[1], "c", 1);

        (void)written;
}

/* Begin to stop all parts. The event loop keeps running until on_drain() finds them stopped. */
static void
begin_to_stop(struct daemon *daemon, int status)
{
        const struct timeval interval = {0, DRAIN_MS * 1000};

        if (daemon->exit_status == 0)
                daemon->exit_status = status;
        if (daemon->stopping_since_ms != 0)
                return;
        daemon->stopping_since_ms = daemon->slow_logged_ms = clock_monotonic_ms();
        systemd_stopping(&daemon->systemd);
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
log_slow_stop(struct daemon *daemon)
{
        int64_t now = clock_monotonic_ms();

        if (now - daemon->slow_logged_ms < SLOW_STOP_MS)
                return;
        daemon->slow_logged_ms = now;
        log_warning("still stopping doing=\"%s\" seconds=%" PRId64, parts_stopping(&daemon->parts),
                    (now - daemon->stopping_since_ms) / 1000);
}

/* Read the configuration in another thread, which wakes on_changes() when it has finished. */
static void
begin_reload(struct daemon *daemon)
{
        systemd_reloading(&daemon->systemd);
        parts_begin_reload(&daemon->parts, wake_main_thread, daemon);
}

static void
end_reload(struct daemon *daemon)
{
        systemd_reloaded(&daemon->systemd, parts_end_reload(&daemon->parts));
        systemd_tick(&daemon->systemd, &daemon->parts);
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
        if (daemon->stopping_since_ms == 0 && parts_reload_state(&daemon->parts) == RELOAD_DONE)
                end_reload(daemon);
}

/* Return by how much the clock that can be set is ahead of the one that cannot. */
static int64_t
read_clocks(void)
{
        return clock_now_ms() - clock_monotonic_ms();
}

/*
 * Log that the clock was set forward; end the process when it was set back. librdkafka waits by the clock
 * that can be set (cnd_timedwait(3); version 2.12 still does), so its heartbeats and retries would pause for
 * as long, and no call wakes its threads. A restart is safe at any moment.
 */
static void
check_clock(int64_t *ahead_ms)
{
        int64_t before_ms = *ahead_ms, step_ms;

        *ahead_ms = read_clocks();
        step_ms = *ahead_ms - before_ms;
        if (step_ms > CLOCK_STEP_MS)
                log_warning("clock set forward by_ms=%" PRId64, step_ms);
        if (step_ms >= -CLOCK_STEP_MS)
                return;
        log_error(
            "clock set back; exiting to be restarted, because the Kafka client would stall by_ms=%" PRId64
            " status=%d",
            -step_ms, EX_TEMPFAIL);
        _exit(EX_TEMPFAIL);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)fd;
        (void)what;
        check_clock(&daemon->clock_ahead_ms);
        log_flood_report();
        log_report_lost();
        if (daemon->stopping_since_ms != 0) {
                systemd_drain(&daemon->systemd, &daemon->parts);
                log_slow_stop(daemon);
                return;
        }
        parts_tick(&daemon->parts);
        systemd_tick(&daemon->systemd, &daemon->parts);
}

static void
stop(struct daemon *daemon, uint32_t number)
{
        if (daemon->stopping_since_ms == 0)
                log_notice("stopping signal=%s", number == SIGTERM ? "SIGTERM" : "SIGINT");
        begin_to_stop(daemon, 0);
}

/* Any number of SIGHUP during a reload cause one more: the file may have changed since it was read. */
static void
reload(struct daemon *daemon)
{
        if (daemon->stopping_since_ms != 0)
                return;
        if (parts_reload_state(&daemon->parts) == RELOAD_NONE)
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
                else
                        stop(daemon, info.ssi_signo);
        }
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

static void
list_signals(sigset_t *set)
{
        (void)sigemptyset(set);
        for (size_t i = 0; i < ARRAY_LEN(signals); i++)
                (void)sigaddset(set, signals[i]);
}

/*
 * The signals stay blocked in all threads and are read from a descriptor. Handlers would interrupt
 * librdkafka's threads: the thread of its mock broker ends with a mutex locked when its poll() is interrupted
 * (2.0.2). Signals that arrive after the event loop has ended are never delivered, so that a second SIGTERM
 * does not kill a daemon that is stopping.
 */
void
daemon_hold_signals(void)
{
        sigset_t set;

        list_signals(&set);
        (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
        /* An ignored signal, as under nohup, would not be read either. */
        for (size_t i = 0; i < ARRAY_LEN(signals); i++)
                (void)signal(signals[i], SIG_DFL);
        /* 0.1.0 logged its state on this signal. A script that still sends it must not end the daemon. */
        (void)signal(SIGUSR1, SIG_IGN);
}

static int
open_signals(struct daemon *daemon)
{
        sigset_t set;

        list_signals(&set);
        daemon->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        return daemon->signal_fd < 0 ? -1 : 0;
}

/* Log libevent's messages, which otherwise go to stderr in another format. Its errors are fatal. */
static void
on_libevent_message(int severity, const char *message)
{
        static struct log_flood flood;
        char quoted[LOG_QUOTED_SIZE];

        if (severity == EVENT_LOG_ERR)
                log_error("libevent failed reason=%s", log_quote(message, quoted));
        else if (severity == EVENT_LOG_WARN)
                log_flood(&flood, LOG_LEVEL_WARNING, "libevent warning reason=%s",
                          log_quote(message, quoted));
}

/* Replace exit(), by which libevent would unload OpenSSL while other threads use it. */
static void
on_libevent_failure(int error)
{
        (void)error;
        _exit(EX_SOFTWARE);
}

static int
open_events(struct daemon *daemon, struct error *error)
{
        int64_t interval_ms = systemd_interval_ms(&daemon->systemd);
        const struct timeval interval = {interval_ms / 1000, interval_ms % 1000 * 1000};

        event_set_log_callback(on_libevent_message);
        event_set_fatal_callback(on_libevent_failure);
        event_set_mem_functions(pool_alloc, pool_resize, pool_free);
        daemon->base = event_base_new();
        if (daemon->base == NULL || pipe2(daemon->pipe, O_NONBLOCK | O_CLOEXEC) != 0 ||
            open_signals(daemon) != 0)
                return error_set(error, "cannot start the event loop");
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
        daemon->clock_ahead_ms = read_clocks();
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
            activation_fits(&daemon->activation, config, error) != 0 ||
            listen_check_start(config, &daemon->activation, error) != 0)
                return EX_CONFIG;
        if (open_events(daemon, error) != 0 || parts_open(&daemon->parts, config, &daemon->activation,
                                                          daemon->base, wake_main_thread, daemon, error) != 0)
                return EX_OSERR;
        return 0;
}

/*
 * Keep secrets out of cores and of other processes of the same user. LeakSanitizer needs to trace the
 * process.
 */
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
        char quoted[LOG_QUOTED_SIZE], reason[PROBE_REASON_SIZE];
        struct error error;

        protect_memory();
        systemd_open(&daemon.systemd);
        log_set_level(config->log_level);
        log_notice("starting version=%s instance=%s file=%s", PACKAGE_VERSION, config->instance,
                   log_quote(config->file, quoted));
        reload_log_certificate(config);
        daemon.exit_status = open_daemon(&daemon, config, &error);
        if (daemon.exit_status == 0) {
                wake_main_thread(&daemon); /* for changes before the parts were open */
                systemd_tick(&daemon.systemd, &daemon.parts);
                (void)event_base_dispatch(daemon.base);
                if (daemon.exit_status != 0)
                        systemd_failed(&daemon.systemd, parts_why(&daemon.parts, reason));
        } else {
                log_error("cannot start reason=%s", log_quote(error.text, quoted));
                systemd_failed(&daemon.systemd, error.text);
        }
        parts_close(&daemon.parts);
        close_events(&daemon);
        systemd_close(&daemon.systemd);
        log_flood_end_all();
        log_notice("stopped status=%d", daemon.exit_status);
        return daemon.exit_status;
}
