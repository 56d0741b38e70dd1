#include "receiver/receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/listener.h"
#include "kafka/outage.h"
#include "receiver/lane.h"
#include "receiver/shared.h"

/* A lane whose event loop has not run for this long is not ready. */
#define STUCK_MS 5000

/* On sockets passed on by the manager, let connections wait this long for Kafka instead of answering 503. */
#define HOLD_MS 10000

/* Time for all lanes to connect, during which the main thread is blocked. */
#define CONNECT_MS 2000

/* Other deliveries come before the spool's while the last one went to Kafka less than this ago. */
#define TRAFFIC_MS 1000

/* A disk that has not answered for this long is reported. */
#define SPOOL_STUCK_MS 30000

struct receiver {
        const struct config *config;
        const struct activation *activation;
        struct receiver_shared *shared;
        int *listeners;
        size_t n_listeners;
        struct lane **lanes;
        size_t n_lanes;
        int is_connected; /* lane_connect() was called since Kafka became reachable */
        int is_stopping;
};

static int
open_tls(struct receiver *receiver, struct error *error)
{
        const struct config *config = receiver->config;

        if (config->certificate == NULL)
                return 0;
        receiver->shared->tls = tls_new(config->certificate, error);
        return receiver->shared->tls == NULL ? error_prefix(error, "%s", config->tls_certificate_file) : 0;
}

static void
add_listener(struct receiver *receiver, int fd, const char *opened_by)
{
        int has_tls = receiver->config->certificate != NULL;
        char name[LISTENER_NAME_SIZE], value[LOG_QUOTED_SIZE];

        receiver->listeners[receiver->n_listeners++] = fd;
        log_info("listening for=receiver tls=%s opened_by=%s address=%s", has_tls ? "on" : "off", opened_by,
                 log_value(name, strlen(listener_name(fd, name, sizeof(name))), value));
}

static int
open_listeners(struct receiver *receiver, struct error *error)
{
        const struct config *config = receiver->config;
        const struct activation *activation = receiver->activation;

        receiver->listeners = mem_alloc((config->n_listen + activation->n_receivers) * sizeof(int));
        for (size_t i = 0; i < activation->n_receivers; i++)
                add_listener(receiver, activation->receivers[i], "manager");
        if (activation->n_receivers > 0) {
                receiver->shared->hold_until_ms = clock_monotonic_ms() + HOLD_MS;
                return 0;
        }
        for (size_t i = 0; i < config->n_listen; i++) {
                const struct config_listen *listen = &config->listen[i];
                int fd = listener_open((const struct sockaddr *)&listen->address, listen->address_len, error);

                if (fd < 0)
                        return error_prefix(error, "[receiver] listen = %s", listen->text);
                add_listener(receiver, fd, "daemon");
        }
        return 0;
}

static int
start_lanes(struct receiver *receiver, struct error *error)
{
        receiver->lanes = mem_alloc(receiver->config->threads * sizeof(struct lane *));
        for (size_t i = 0; i < receiver->config->threads; i++) {
                struct lane *lane =
                    lane_new(receiver->shared, i + 1, receiver->listeners, receiver->n_listeners, error);

                if (lane == NULL)
                        return -1;
                receiver->lanes[receiver->n_lanes++] = lane;
        }
        return 0;
}

static int
may_append(void *arg)
{
        const struct receiver_shared *shared = arg;

        return atomic_load(&shared->may_append) && atomic_load(&shared->reachable_since_ms) != 0;
}

static int
has_traffic(void *arg)
{
        const struct receiver_shared *shared = arg;
        int64_t last_ms = atomic_load(&shared->appended_ms);

        return last_ms != 0 && clock_coarse_ms() - last_ms < TRAFFIC_MS;
}

static void
on_answered(void *arg)
{
        receiver_shared_note_drained(arg);
}

static int
open_spool(struct receiver *receiver, struct error *error)
{
        const struct config *config = receiver->config;
        struct receiver_shared *shared = receiver->shared;
        const struct spool_drain_owner owner = {shared, may_append, has_traffic, on_answered};

        if (config->spool == NULL)
                return 0;
        shared->spool = spool_open(config->spool, config->spool_max, error);
        if (shared->spool == NULL ||
            spool_start_draining(shared->spool, config, shared->bootstrap, &owner, error) != 0)
                return error_prefix(error, "spool = %s", config->spool);
        metrics_watch_spool(shared->metrics, spool_stats(shared->spool));
        return 0;
}

struct receiver *
receiver_new(struct current *current, const char *bootstrap, struct metrics *metrics, struct probe *probe,
             const struct activation *activation, struct error *error)
{
        struct receiver *receiver = mem_alloc(sizeof(*receiver));

        receiver->config = current_first(current);
        receiver->activation = activation;
        receiver->shared = receiver_shared_new(current, bootstrap, metrics, probe);
        if (open_tls(receiver, error) != 0 || open_spool(receiver, error) != 0 ||
            open_listeners(receiver, error) != 0 || start_lanes(receiver, error) != 0) {
                receiver_free(receiver);
                return NULL;
        }
        return receiver;
}

int
receiver_prepare_reload(struct receiver *receiver, const struct config *config, struct error *error)
{
        struct tls *tls = receiver->shared->tls;

        if (tls != NULL && config->certificate != NULL && tls_replace(tls, config->certificate, error) != 0)
                return error_prefix(error, "%s", config->tls_certificate_file);
        if (receiver->shared->spool != NULL)
                spool_warn_if_moved(receiver->shared->spool,
                                    config->roles & CONFIG_RECEIVER ? config->spool : NULL);
        receiver_shared_renew(receiver->shared, config);
        return 0;
}

void
receiver_reload(struct receiver *receiver)
{
        for (size_t i = 0; i < receiver->n_lanes; i++)
                lane_reload(receiver->lanes[i]);
}

/* Lanes for which no time is left connect when their first delivery comes, which then waits. */
static void
connect_lanes(struct receiver *receiver)
{
        int64_t until = clock_monotonic_ms() + CONNECT_MS;

        for (size_t i = 0; i < receiver->n_lanes; i++) {
                int64_t left = until - clock_monotonic_ms();

                lane_connect(receiver->lanes[i], left > 0 ? (int)left : 0);
        }
}

void
receiver_probe_changed(struct receiver *receiver)
{
        int is_reachable = probe_state(receiver->shared->probe) == PROBE_REACHABLE;

        atomic_store(&receiver->shared->may_append, probe_has_verified(receiver->shared->probe));
        if (!is_reachable)
                atomic_store(&receiver->shared->reachable_since_ms, 0);
        else if (atomic_load(&receiver->shared->reachable_since_ms) == 0)
                atomic_store(&receiver->shared->reachable_since_ms, probe_asked_ms(receiver->shared->probe));
        if (is_reachable)
                connect_lanes(receiver);
        receiver->is_connected = is_reachable;
}

/*
 * With a spool the receiver is ready while it can store deliveries, wherever. Return whether it is, with a
 * text about it. Asking ends the time of spooling when Kafka works again and no delivery has shown it.
 */
static int
report_spooling(struct receiver *receiver, char reason[HEALTH_REASON_SIZE])
{
        struct receiver_shared *shared = receiver->shared;
        int is_away = receiver_shared_is_away(shared), has_failed = receiver_shared_has_failed(shared);
        int64_t since_ms;
        char since[CLOCK_RFC3339_SIZE], cause[RECENT_DETAIL_SIZE];
        const char *refusal = NULL;

        if (!receiver_is_alive(receiver, STUCK_MS, reason))
                return 0;
        if (!spool_is_alive(shared->spool, SPOOL_STUCK_MS, reason) && is_away)
                return 0;
        if (is_away || has_failed)
                refusal = spool_writer_refuses(spool_writer(shared->spool), 0);
        if (refusal != NULL) {
                (void)snprintf(reason, HEALTH_REASON_SIZE, "%s; %s", refusal,
                               outage_describe(is_away ? "Kafka is not reachable" : "the last append failed",
                                               cause, sizeof(cause)));
                return 0;
        }
        if (!is_away && !has_failed && spool_is_idle(shared->spool))
                receiver_shared_note_drained(shared); /* else only a delivery would end it */
        since_ms = atomic_load(&spool_stats(shared->spool)->since_ms);
        if (since_ms != 0)
                (void)snprintf(reason, HEALTH_REASON_SIZE, "ready, spooling since %s",
                               clock_format_s(since_ms / 1000, since));
        else
                (void)snprintf(reason, HEALTH_REASON_SIZE, "ready");
        return 1;
}

int
receiver_is_ready(void *arg, char reason[HEALTH_REASON_SIZE])
{
        struct receiver *receiver = arg;
        char why[PROBE_REASON_SIZE] = "not connected to Kafka yet";
        struct error error;

        if (receiver->is_stopping) {
                (void)snprintf(reason, HEALTH_REASON_SIZE, "stopping");
                return 0;
        }
        if (receiver->shared->spool != NULL)
                return report_spooling(receiver, reason);
        if (probe_reason(receiver->shared->probe, why) || !receiver->is_connected) {
                (void)snprintf(reason, HEALTH_REASON_SIZE, "%s", why);
                return 0;
        }
        if (!receiver_is_alive(receiver, STUCK_MS, reason))
                return 0;
        for (size_t i = 0; i < receiver->n_lanes; i++) {
                if (!lane_is_ready(receiver->lanes[i], &error)) {
                        (void)snprintf(reason, HEALTH_REASON_SIZE, "%.*s", HEALTH_REASON_SIZE - 1,
                                       error.text);
                        return 0;
                }
        }
        if (receiver_shared_has_failed(receiver->shared)) {
                (void)snprintf(reason, HEALTH_REASON_SIZE, "the last append failed");
                return 0;
        }
        return 1;
}

/* Whether no listening socket was shut down. The receiver itself shuts its sockets down when it stops. */
static int
is_listening(const struct receiver *receiver, char reason[HEALTH_REASON_SIZE])
{
        char name[LISTENER_NAME_SIZE];

        for (size_t i = 0; i < receiver->n_listeners && !receiver->is_stopping; i++) {
                if (!listener_is_shut_down(receiver->listeners[i]))
                        continue;
                (void)snprintf(reason, HEALTH_REASON_SIZE,
                               "another process has shut down the listening socket %s",
                               listener_name(receiver->listeners[i], name, sizeof(name)));
                return 0;
        }
        return 1;
}

int
receiver_is_alive(struct receiver *receiver, int64_t limit_ms, char reason[HEALTH_REASON_SIZE])
{
        for (size_t i = 0; i < receiver->n_lanes; i++) {
                if (lane_has_stopped(receiver->lanes[i]) || lane_is_alive(receiver->lanes[i], limit_ms))
                        continue;
                (void)snprintf(reason, HEALTH_REASON_SIZE, "receiver lane %zu is stuck", i + 1);
                return 0;
        }
        return is_listening(receiver, reason);
}

void
receiver_stop(struct receiver *receiver)
{
        if (receiver->is_stopping)
                return;
        receiver->is_stopping = 1;
        for (size_t i = 0; i < receiver->n_lanes; i++)
                lane_stop(receiver->lanes[i]);
        /*
         * Refuse new connections instead of letting them wait in vain. Sockets passed on by the manager stay
         * open for the next process.
         */
        for (size_t i = 0; i < receiver->n_listeners && receiver->activation->n_receivers == 0; i++)
                (void)shutdown(receiver->listeners[i], SHUT_RDWR);
}

int
receiver_has_stopped(struct receiver *receiver)
{
        size_t i = 0;

        while (i < receiver->n_lanes && lane_has_stopped(receiver->lanes[i]))
                i++;
        return i == receiver->n_lanes;
}

void
receiver_free(struct receiver *receiver)
{
        if (receiver == NULL)
                return;
        receiver_stop(receiver);
        for (size_t i = 0; i < receiver->n_lanes; i++)
                lane_free(receiver->lanes[i]);
        for (size_t i = 0; i < receiver->n_listeners && receiver->activation->n_receivers == 0; i++)
                listener_close(receiver->listeners[i]);
        free(receiver->lanes);
        free(receiver->listeners);
        metrics_watch_spool(receiver->shared->metrics, NULL);
        spool_close(receiver->shared->spool);
        receiver_shared_free(receiver->shared);
        free(receiver);
}
