#include "daemon/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"

#define ALIVE_WITHIN_MS 15000 /* for /healthz */
#define COMMIT_MAX_MS 30000   /* the transaction timeout (transaction.c) */

static int
open_embedded(struct parts *parts, struct error *error)
{
        if (!parts->config->embedded)
                return 0;
        parts->embedded = embedded_new(parts->config, error);
        if (parts->embedded == NULL)
                return -1;
        parts->bootstrap = embedded_bootstrap(parts->embedded);
        log_notice("embedded broker address=%s note=\"for trials only: keeps nothing across restarts, and "
                   "about 5 MB a partition\"",
                   parts->bootstrap);
        return 0;
}

static int
open_router(struct parts *parts, void (*changed)(void *arg), void *arg, struct error *error)
{
        if (!(parts->config->roles & CONFIG_ROUTER))
                return 0;
        parts->router =
            router_new(parts->current, parts->bootstrap, parts->metrics, parts->probe, changed, arg, error);
        if (parts->router == NULL)
                return -1;
        health_add(&parts->health, "router", router_is_ready, parts->router);
        return 0;
}

static int
open_receiver(struct parts *parts, struct error *error)
{
        if (!(parts->config->roles & CONFIG_RECEIVER))
                return 0;
        parts->receiver = receiver_new(parts->current, parts->bootstrap, parts->metrics, parts->probe,
                                       parts->activation, error);
        if (parts->receiver == NULL)
                return -1;
        health_add(&parts->health, "receiver", receiver_is_ready, parts->receiver);
        return 0;
}

static int
open_admin(struct parts *parts, struct event_base *base, struct error *error)
{
        const struct config *config = parts->config;
        int passed = parts->activation->admin;

        if (config->admin == NULL && passed < 0)
                return 0;
        parts->admin = admin_new(base, config, passed, &parts->health, parts->metrics, error);
        if (parts->admin != NULL)
                return 0;
        return passed >= 0 ? -1 : error_prefix(error, "[admin] listen = %s", config->admin->text);
}

static int
are_alive(void *arg, char reason[HEALTH_REASON_SIZE])
{
        return parts_are_alive(arg, ALIVE_WITHIN_MS, reason);
}

int
parts_open(struct parts *parts, const struct config *config, const struct activation *activation,
           struct event_base *base, void (*changed)(void *arg), void *arg, struct error *error)
{
        *parts = (struct parts){.config = config, .activation = activation, .current = current_new(config)};
        if (open_embedded(parts, error) != 0)
                return -1;
        parts->metrics = metrics_new(config, &parts->health, parts->bootstrap);
        parts->health.is_alive = are_alive;
        parts->health.alive_arg = parts;
        parts->probe = probe_new(config, parts->bootstrap, changed, arg, error);
        if (parts->probe == NULL)
                return -1;
        if (open_router(parts, changed, arg, error) != 0 || open_receiver(parts, error) != 0)
                return -1;
        return open_admin(parts, base, error);
}

int
parts_stop(struct parts *parts)
{
        if (parts->receiver != NULL) {
                receiver_stop(parts->receiver);
                if (!receiver_has_stopped(parts->receiver))
                        return 0;
        }
        if (parts->receiver_stopped_ms == 0)
                parts->receiver_stopped_ms = clock_monotonic_ms();
        if (parts->router != NULL) {
                router_stop(parts->router);
                return router_has_stopped(parts->router);
        }
        return 1;
}

static int
is_receiving(const struct parts *parts)
{
        return parts->receiver != NULL && !receiver_has_stopped(parts->receiver);
}

const char *
parts_stopping(const struct parts *parts)
{
        return is_receiving(parts) ? "answering requests in flight"
                                   : "committing the open transaction, and writing files of the state";
}

int
parts_stop_can_end(const struct parts *parts)
{
        return is_receiving(parts) || (probe_state(parts->probe) == PROBE_REACHABLE &&
                                       clock_monotonic_ms() - parts->receiver_stopped_ms < COMMIT_MAX_MS);
}

int
parts_are_alive(const struct parts *parts, int64_t limit_ms, char reason[HEALTH_REASON_SIZE])
{
        return (parts->receiver == NULL || receiver_is_alive(parts->receiver, limit_ms, reason)) &&
               (parts->router == NULL || router_is_alive(parts->router, limit_ms, reason));
}

int
parts_can_serve(const struct parts *parts)
{
        char reason[HEALTH_REASON_SIZE];

        return parts->receiver != NULL ? receiver_is_ready(parts->receiver, reason)
                                       : router_is_ready(parts->router, reason);
}

void
parts_close(struct parts *parts)
{
        reload_cancel(&parts->reload);
        receiver_free(parts->receiver);
        router_free(parts->router);
        config_free(reload_end(&parts->reload));
        probe_free(parts->probe);
        admin_free(parts->admin);
        metrics_free(parts->metrics);
        embedded_free(parts->embedded);
        current_free(parts->current);
}

int
parts_note_changes(struct parts *parts)
{
        enum probe_state state = probe_state(parts->probe);
        int status = state == PROBE_REFUSED ? EX_CONFIG : 0;

        metrics_set(parts->metrics, METRICS_KAFKA_REACHABLE, state == PROBE_REACHABLE);
        if (status == 0 && parts->router != NULL)
                status = router_exit_status(parts->router);
        if (parts->receiver != NULL)
                receiver_probe_changed(parts->receiver);
        health_log_changes(&parts->health);
        return status;
}

const char *
parts_why(const struct parts *parts, char reason[PROBE_REASON_SIZE])
{
        if (probe_state(parts->probe) != PROBE_REFUSED || !probe_reason(parts->probe, reason))
                return "see the log";
        return reason;
}

void
parts_tick(struct parts *parts)
{
        struct brokers brokers;

        probe_brokers(parts->probe, &brokers);
        metrics_set_brokers(parts->metrics, &brokers);
        metrics_set(parts->metrics, METRICS_MISCONFIGURED, (uint64_t)probe_n_misconfigured(parts->probe));
        health_log_changes(&parts->health);
        admin_tick(parts->admin);
}

/* Prepare to apply a configuration. Return 0, or -1 and the reason. */
static int
prepare(struct parts *parts, const struct config *next, struct error *error)
{
        if (parts->embedded != NULL && embedded_make_topics(parts->embedded, next, error) != 0)
                return -1;
        return parts->receiver == NULL ? 0 : receiver_prepare_reload(parts->receiver, next, error);
}

/* Apply a configuration. Nothing here can fail, so it is applied as a whole. */
static void
apply(struct parts *parts, const struct config *next)
{
        char file[LOG_QUOTED_SIZE];

        log_set_level(next->log_level);
        metrics_apply(parts->metrics, next);
        current_set(parts->current, next);
        if (parts->receiver != NULL)
                receiver_reload(parts->receiver);
        parts->n_reloads++;
        log_notice("configuration reloaded sources=%zu generation=%" PRIu64 " file=%s", next->n_sources,
                   parts->n_reloads + 1, log_quote(next->file, file));
        reload_log_certificate(next);
}

void
parts_begin_reload(struct parts *parts, void (*changed)(void *arg), void *arg)
{
        reload_begin(&parts->reload, parts->current, parts->probe, changed, arg);
}

enum reload_state
parts_reload_state(const struct parts *parts)
{
        return reload_state(&parts->reload);
}

int
parts_end_reload(struct parts *parts)
{
        const struct config *next = reload_end(&parts->reload);
        struct error *error = &parts->reload.error;
        int is_applied = next != NULL && prepare(parts, next, error) == 0;

        if (is_applied) {
                apply(parts, next);
        } else {
                metrics_refuse_reload(parts->metrics, parts->reload.begun_s, error->text);
                reload_log_failed(parts->config, error->text);
        }
        config_free(next);
        return is_applied;
}
