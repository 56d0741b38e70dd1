#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/standard_files.h"
#include "config/current.h"
#include "kafka/embedded.h"
#include "kafka/probe.h"
#include "ops/admin.h"
#include "ops/health.h"
#include "ops/metrics.h"
#include "ops/reload.h"
#include "ops/tls_check.h"
#include "receiver/receiver.h"
#include "router/router.h"

#define DEFAULT_FILE SYSCONFDIR "/gatepost/gatepost.conf"
#define HEALTH_INTERVAL_MS 1000
#define STEP_MAX_MS 5000 /* well below every time-out towards Kafka */

/* The parts of the daemon. The main thread holds them, and sees to signals, the admin endpoint and readiness. */
struct daemon {
        const struct config *config; /* the first */
        struct current *current;
        struct event_base *base;
        struct event *signals[3];
        struct event *changes; /* other threads write to the pipe when something has changed */
        struct event *tick;
        struct clock_watch clock;
        int pipe[2];
        struct embedded *embedded;
        const char *bootstrap; /* NULL: the configured one */
        struct metrics *metrics;
        struct health health;
        struct probe *probe;
        struct receiver *receiver;
        struct router *router;
        struct admin *admin;
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
end_with(struct daemon *daemon, int status)
{
        if (daemon->exit_status == 0)
                daemon->exit_status = status;
        (void)event_base_loopbreak(daemon->base);
}

static void
on_changes(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;
        char bytes[64];

        (void)what;
        while (read(fd, bytes, sizeof(bytes)) > 0)
                ;
        if (daemon->probe != NULL)
                metrics_set_kafka(daemon->metrics, probe_state(daemon->probe) == PROBE_REACHABLE);
        if (daemon->probe != NULL && probe_state(daemon->probe) == PROBE_REFUSED)
                end_with(daemon, EX_CONFIG);
        if (daemon->router != NULL && router_exit_status(daemon->router) != 0)
                end_with(daemon, router_exit_status(daemon->router));
        if (daemon->receiver != NULL)
                receiver_probe_changed(daemon->receiver);
        health_log_changes(&daemon->health);
}

/*
 * Kafka's client waits by the clock that can be set (C11's cnd_timedwait; librdkafka 2.12 still does): when that is set
 * back, what its threads have to do by the hour, heartbeats and retries among it, is not done for as long, and no call
 * wakes them all. To begin anew is safe at any moment. Signed timestamps are held against this clock, so steps are told.
 */
static void
watch_clock(struct daemon *daemon)
{
        int64_t step_ms = clock_take_step(&daemon->clock);

        if (step_ms > STEP_MAX_MS)
                log_warning("the clock was set forward by_ms=%" PRId64, step_ms);
        if (step_ms >= -STEP_MAX_MS)
                return;
        log_error("the clock was set back, and Kafka's client could stand still for that long: ending at "
                  "once, to be started again by_ms=%" PRId64 " status=%d",
                  -step_ms, EX_TEMPFAIL);
        _exit(EX_TEMPFAIL);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;
        struct brokers brokers;

        (void)fd;
        (void)what;
        watch_clock(daemon);
        if (daemon->probe != NULL) {
                probe_brokers(daemon->probe, &brokers);
                metrics_set_brokers(daemon->metrics, &brokers);
        }
        health_log_changes(&daemon->health);
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;

        (void)what;
        log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        (void)event_base_loopbreak(daemon->base);
}

/* SIGHUP: read the configuration again. Sources, secrets and the certificate are taken over, or nothing is. */
static void
on_reload(evutil_socket_t fd, short what, void *arg)
{
        struct daemon *daemon = arg;
        const struct config *next = reload_read(daemon->current);
        struct error error;

        (void)fd;
        (void)what;
        if (next == NULL)
                return;
        if (daemon->receiver != NULL && receiver_renew(daemon->receiver, next, &error) != 0) {
                log_error("the configuration was not taken over: what was holds on: %s", error.text);
                config_free(next);
                return;
        }
        metrics_renew(daemon->metrics, next);
        current_set(daemon->current, next);
        if (daemon->receiver != NULL)
                receiver_renewed(daemon->receiver);
        log_notice("configuration read again sources=%zu file=%s", next->n_sources, next->file);
        reload_log_certificate(next);
        config_free(next);
}

static int
open_events(struct daemon *daemon, struct error *error)
{
        const struct timeval interval = {HEALTH_INTERVAL_MS / 1000, HEALTH_INTERVAL_MS % 1000 * 1000};

        (void)signal(SIGPIPE, SIG_IGN);
        daemon->base = event_base_new();
        if (daemon->base == NULL || pipe2(daemon->pipe, O_NONBLOCK | O_CLOEXEC) != 0)
                return error_set(error, "the event loop does not start");
        daemon->signals[0] = evsignal_new(daemon->base, SIGTERM, on_signal, daemon);
        daemon->signals[1] = evsignal_new(daemon->base, SIGINT, on_signal, daemon);
        daemon->changes = event_new(daemon->base, daemon->pipe[0], EV_READ | EV_PERSIST, on_changes, daemon);
        daemon->tick = event_new(daemon->base, -1, EV_PERSIST, on_tick, daemon);
        daemon->signals[2] = evsignal_new(daemon->base, SIGHUP, on_reload, daemon);
        if (daemon->signals[0] == NULL || daemon->signals[1] == NULL || daemon->signals[2] == NULL ||
            daemon->changes == NULL || daemon->tick == NULL)
                return error_set(error, "out of memory");
        for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++)
                (void)event_add(daemon->signals[i], NULL);
        (void)event_add(daemon->changes, NULL);
        (void)event_add(daemon->tick, &interval);
        (void)clock_take_step(&daemon->clock);
        return 0;
}

static int
open_embedded(struct daemon *daemon, struct error *error)
{
        if (!daemon->config->embedded)
                return 0;
        daemon->embedded = embedded_new(daemon->config, error);
        if (daemon->embedded == NULL)
                return -1;
        daemon->bootstrap = embedded_bootstrap(daemon->embedded);
        log_notice("embedded broker address=%s note=\"for trying things out: it forgets everything at exit, "
                   "and keeps about "
                   "5 MB a partition\"",
                   daemon->bootstrap);
        return 0;
}

static int
open_roles(struct daemon *daemon, struct error *error)
{
        const struct config *config = daemon->config;

        daemon->metrics = metrics_new(config);
        daemon->probe = probe_new(config, daemon->bootstrap, tell_main_thread, daemon, error);
        if (daemon->probe == NULL)
                return -1;
        if (config->roles & CONFIG_ROUTER) {
                daemon->router = router_new(daemon->current, daemon->bootstrap, daemon->metrics,
                                            daemon->probe, tell_main_thread, daemon, error);
                if (daemon->router == NULL)
                        return -1;
                health_add(&daemon->health, "router", router_is_ready, daemon->router);
        }
        if (config->roles & CONFIG_RECEIVER) {
                daemon->receiver =
                    receiver_new(daemon->current, daemon->bootstrap, daemon->metrics, daemon->probe, error);
                if (daemon->receiver == NULL)
                        return -1;
                health_add(&daemon->health, "receiver", receiver_is_ready, daemon->receiver);
        }
        if (config->admin != NULL) {
                daemon->admin =
                    admin_new(daemon->base, config->admin, &daemon->health, daemon->metrics, error);
                if (daemon->admin == NULL)
                        return error_prefix(error, "[admin] listen = %s", config->admin->text);
        }
        return 0;
}

/* In the order in which deliveries flow: what is received last is still routed. */
static void
close_daemon(struct daemon *daemon)
{
        receiver_free(daemon->receiver);
        router_free(daemon->router);
        probe_free(daemon->probe);
        admin_free(daemon->admin);
        metrics_free(daemon->metrics);
        embedded_free(daemon->embedded);
        current_free(daemon->current);
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

static int
run(const struct config *config)
{
        struct daemon daemon = {.config = config, .current = current_new(config), .pipe = {-1, -1}};
        struct error error;

        log_notice("starting version=%s instance=%s file=%s", PACKAGE_VERSION, config->instance,
                   config->file);
        reload_log_certificate(config);
        if (open_events(&daemon, &error) == 0 && open_embedded(&daemon, &error) == 0 &&
            open_roles(&daemon, &error) == 0) {
                tell_main_thread(&daemon); /* what has changed before the parts were there */
                (void)event_base_dispatch(daemon.base);
        } else {
                log_error("cannot start: %s", error.text);
                daemon.exit_status = EX_OSERR;
        }
        close_daemon(&daemon);
        log_notice("stopped status=%d", daemon.exit_status);
        return daemon.exit_status;
}

static void
usage(FILE *out)
{
        fprintf(out,
                "usage: gatepostd [-t] [-c FILE]\n"
                "Receives signed webhook deliveries and publishes each as one event on Kafka. Stays in the "
                "foreground\n"
                "and logs to stderr.\n\n"
                "  -c, --config FILE  the configuration (default: %s)\n"
                "  -t, --test         check the configuration and exit\n"
                "  -h, --help         show this and exit\n"
                "  -V, --version      show the version and exit\n",
                DEFAULT_FILE);
}

int
main(int argc, char **argv)
{
        static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                                {"test", no_argument, NULL, 't'},
                                                {"help", no_argument, NULL, 'h'},
                                                {"version", no_argument, NULL, 'V'},
                                                {NULL, 0, NULL, 0}};
        const char *file = DEFAULT_FILE;
        struct config *config;
        int option, only_check = 0, status = 0;

        standard_files_hold();
        while ((option = getopt_long(argc, argv, "c:thV", options, NULL)) != -1) {
                switch (option) {
                case 'c':
                        file = optarg;
                        break;
                case 't':
                        only_check = 1;
                        break;
                case 'h':
                        usage(stdout);
                        return 0;
                case 'V':
                        printf("gatepostd %s\n", PACKAGE_VERSION);
                        return 0;
                default:
                        usage(stderr);
                        return EX_USAGE;
                }
        }
        if (optind != argc) {
                usage(stderr);
                return EX_USAGE;
        }
        log_init();
        config = config_load(file);
        if (config == NULL)
                return EX_CONFIG;
        if (tls_check_strength(config) != 0 || (only_check && tls_check_dates(config) != 0))
                status = EX_CONFIG;
        else if (!only_check)
                status = run(config);
        config_free(config);
        return status;
}
