#include "receiver/lane.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/process.h"
#include "config/activation.h"
#include "http/server.h"
#include "receiver/appender.h"
#include "receiver/handler.h"

#define MAX_HEADER_BYTES 32768
#define WAKE_STOP 'q' /* written to the lane's pipe; librdkafka and the spool write other bytes */
#define WAKE_RELOAD 'r'
#define FLUSH_MS 100 /* for the last answer to be sent */
#define BEAT_MS 500
#define HANDLING_SLACK_MS 10000 /* a delivery is answered within ack_timeout, unless the thread is delayed */

_Static_assert(CONFIG_LISTEN_MAX <= HTTP_LISTENERS_MAX && ACTIVATION_MAX <= HTTP_LISTENERS_MAX,
               "a server accepts from all sockets that can be configured or passed on");

/* All but the pipe's writing end belongs to the lane's own thread. */
struct lane {
        struct receiver_shared *shared;
        struct event_base *base;
        struct http_server *server;
        struct appender *appender;
        struct handler *handler;
        const struct config *limited_by; /* held: the server's limits come from it */
        int pipe[2];
        struct event *wake;
        struct event *timer; /* for the first deadline, or the last answers */
        struct event *beat;
        struct heartbeat heartbeat;
        size_t number;
        int stopping;
        int64_t flushed_ms; /* monotonic: when the lane ends, while it stops and no delivery waits; else 0 */
        atomic_int is_open; /* it accepts connections */
        atomic_int has_stopped;
        pthread_t thread;
};

/*
 * Run the timer at the first deadline. While the lane stops and no delivery waits, run it FLUSH_MS after the
 * last answer; further events of Kafka's client do not extend this time.
 */
static void
set_timer(struct lane *lane)
{
        int64_t deadline = appender_next_deadline(lane->appender), now = clock_monotonic_ms(), left;
        struct timeval in;

        if (deadline < 0 && !lane->stopping) {
                (void)evtimer_del(lane->timer);
                return;
        }
        if (deadline >= 0)
                lane->flushed_ms = 0;
        else if (lane->flushed_ms == 0)
                lane->flushed_ms = now + FLUSH_MS;
        left = (deadline < 0 ? lane->flushed_ms : deadline) - now;
        left = left < 0 ? 0 : left;
        in = (struct timeval){left / 1000, left % 1000 * 1000};
        (void)evtimer_add(lane->timer, &in);
}

static void
on_head(struct http_request *request, void *arg)
{
        struct lane *lane = arg;

        handler_head(lane->handler, request);
}

static void
on_complete(struct http_request *request, void *arg)
{
        struct lane *lane = arg;

        handler_complete(lane->handler, request);
}

static void
on_request(struct http_request *request, void *arg)
{
        struct lane *lane = arg;

        handler_append(lane->handler, request);
        set_timer(lane);
}

/* A chunked body has no length; it is refused at the chunk that exceeds the limit. */
static void
describe_too_large(uint64_t content_length, uint64_t max_body, char detail[RECENT_DETAIL_SIZE])
{
        if (content_length > 0)
                (void)snprintf(detail, RECENT_DETAIL_SIZE,
                               "the body has %" PRIu64 " bytes; max_body is %" PRIu64, content_length,
                               max_body);
        else
                (void)snprintf(detail, RECENT_DETAIL_SIZE,
                               "the chunked body is larger than max_body, %" PRIu64, max_body);
}

/* The HTTP server itself has refused a request. */
static void
on_refused(const struct http_refusal *refusal, void *arg)
{
        struct lane *lane = arg;
        struct receiver_refused refused = {.account = receiver_shared_account(lane->shared, NULL),
                                           .outcome = OUTCOME_BAD_REQUEST,
                                           .status = refusal->status,
                                           .client = refusal->client,
                                           .is_proxy = refusal->is_proxy,
                                           .request_id = refusal->request_id,
                                           .detail = refusal->reason};
        char detail[RECENT_DETAIL_SIZE];

        if (refusal->status == 413) {
                describe_too_large(refusal->content_length, lane->shared->config->max_body, detail);
                refused.outcome = OUTCOME_TOO_LARGE;
                refused.detail = detail;
        } else if (refusal->status == 503) {
                refused.outcome = OUTCOME_UNAVAILABLE;
        }
        receiver_shared_refused(lane->shared, &refused);
}

static void
on_closed(enum http_end end, int is_answered, const char *reason, const struct address *client, void *arg)
{
        const struct lane *lane = arg;

        if (!is_answered)
                receiver_shared_closed(lane->shared, end, reason, client);
}

/* Fill in the limits of the newest configuration, which the lane holds while they point into it. */
static void
take_limits(struct lane *lane, struct http_limits *limits)
{
        const struct config *first = lane->shared->config, *newest = handler_config(lane->handler);
        uint64_t max_connections = atomic_load(&lane->shared->max_connections);

        *limits = (struct http_limits){
            .max_header_bytes = MAX_HEADER_BYTES,
            .max_headers = newest->max_headers,
            .max_body = first->max_body,
            .max_connections = max_connections,
            .own_connections =
                max_connections / first->threads + (lane->number <= max_connections % first->threads ? 1 : 0),
            .header_timeout_ms = newest->header_timeout_ms,
            .request_timeout_ms = newest->request_timeout_ms,
            .idle_timeout_ms = newest->idle_timeout_ms,
            .trust = {newest->trusted_proxies, newest->n_trusted_proxies, newest->trusts_unix_sockets},
            .clients = lane->shared->clients,
            .handshake_timeout_ms = newest->handshake_timeout_ms,
            .handling_timeout_ms = first->ack_timeout_ms + HANDLING_SLACK_MS,
            .requires_proxy = newest->requires_proxy,
            .budget = lane->shared->budget,
            .stats = metrics_connections(lane->shared->metrics),
        };
        lane->limited_by = config_hold(newest);
}

static void
reload_limits(struct lane *lane)
{
        const struct config *before = lane->limited_by;
        struct http_limits limits;

        if (handler_config(lane->handler) == before)
                return;
        take_limits(lane, &limits);
        http_server_set_limits(lane->server, &limits);
        config_free(before);
}

/* Accept connections once deliveries can be appended, or when connections have waited for it long enough. */
static void
accept_when_ready(struct lane *lane)
{
        struct error error;

        if (lane->stopping || atomic_load(&lane->is_open))
                return;
        if (lane->shared->spool == NULL && clock_monotonic_ms() < lane->shared->hold_until_ms &&
            !(atomic_load(&lane->shared->may_append) && appender_is_ready(lane->appender, &error)))
                return;
        http_server_hold(lane->server, 0);
        atomic_store(&lane->is_open, 1);
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
        struct lane *lane = arg;
        char bytes[64];
        ssize_t n;

        (void)what;
        while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
                if (memchr(bytes, WAKE_STOP, (size_t)n) == NULL || lane->stopping)
                        continue;
                lane->stopping = 1;
                /*
                 * A connection closes with its next answer; but clients with many requests must not delay the
                 * end.
                 */
                handler_refuse_from(lane->handler,
                                    clock_monotonic_ms() + (int64_t)lane->shared->config->ack_timeout_ms);
                http_server_stop_listening(lane->server);
        }
        accept_when_ready(lane);
        (void)handler_config(
            lane->handler); /* the previous one and its secrets need not wait for the next request */
        appender_serve(lane->appender);
        reload_limits(lane);
        set_timer(lane);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct lane *lane = arg;

        (void)fd;
        (void)what;
        if (lane->stopping && appender_next_deadline(lane->appender) < 0) {
                (void)event_base_loopbreak(lane->base);
                return;
        }
        appender_expire(lane->appender);
        set_timer(lane);
}

static void
on_beat(evutil_socket_t fd, short what, void *arg)
{
        struct lane *lane = arg;

        (void)fd;
        (void)what;
        heartbeat_beat(&lane->heartbeat);
        http_server_keep_to_limits(lane->server);
        accept_when_ready(lane);
}

static void
close_lane(struct lane *lane)
{
        appender_free(lane->appender); /* before the server, whose requests it answers */
        http_server_free(lane->server);
        handler_free(lane->handler);
        config_free(lane->limited_by);
        if (lane->wake != NULL)
                event_free(lane->wake);
        if (lane->timer != NULL)
                event_free(lane->timer);
        if (lane->beat != NULL)
                event_free(lane->beat);
        if (lane->base != NULL)
                event_base_free(lane->base);
        if (lane->pipe[0] >= 0) {
                (void)close(lane->pipe[0]);
                (void)close(lane->pipe[1]);
        }
        free(lane);
}

static struct event_base *
open_base(void)
{
        struct event_config *options = event_config_new();
        struct event_base *base = NULL;

        if (options != NULL && event_config_set_flag(options, EVENT_BASE_FLAG_NOLOCK |
                                                                  EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) == 0)
                base = event_base_new_with_config(options);
        if (options != NULL)
                event_config_free(options);
        return base;
}

static int
open_server(struct lane *lane, const int *listeners, size_t n)
{
        static const struct http_callbacks callbacks = {on_head, on_complete, on_request, on_refused,
                                                        on_closed};
        struct http_limits limits;

        take_limits(lane, &limits);
        lane->server = http_server_new(lane->base, &limits, lane->shared->tls, &callbacks, lane);
        for (size_t i = 0; lane->server != NULL && i < n; i++) {
                if (http_server_listen(lane->server, listeners[i]) != 0)
                        return -1;
        }
        if (lane->server == NULL)
                return -1;
        http_server_hold(lane->server, lane->shared->hold_until_ms != 0);
        atomic_store(&lane->is_open, lane->shared->hold_until_ms == 0);
        return 0;
}

static int
open_events(struct lane *lane)
{
        const struct timeval interval = {BEAT_MS / 1000, BEAT_MS % 1000 * 1000};

        if (pipe2(lane->pipe, O_NONBLOCK | O_CLOEXEC) != 0)
                return -1;
        lane->base = open_base();
        if (lane->base == NULL)
                return -1;
        lane->wake = event_new(lane->base, lane->pipe[0], EV_READ | EV_PERSIST, on_wake, lane);
        lane->timer = evtimer_new(lane->base, on_timer, lane);
        lane->beat = event_new(lane->base, -1, EV_PERSIST, on_beat, lane);
        if (lane->wake == NULL || lane->timer == NULL || lane->beat == NULL)
                return -1;
        return event_add(lane->wake, NULL) == 0 && event_add(lane->beat, &interval) == 0 ? 0 : -1;
}

static void *
run(void *arg)
{
        struct lane *lane = arg;
        char name[16];

        (void)snprintf(name, sizeof(name), "receiver-%u", (unsigned)lane->number);
        (void)pthread_setname_np(pthread_self(), name);
        heartbeat_beat(&lane->heartbeat);
        (void)event_base_dispatch(lane->base);
        pool_clear();
        atomic_store(&lane->has_stopped, 1);
        return NULL;
}

struct lane *
lane_new(struct receiver_shared *shared, size_t number, const int *listeners, size_t n, struct error *error)
{
        struct lane *lane = mem_alloc(sizeof(*lane));

        lane->shared = shared;
        lane->number = number;
        lane->pipe[0] = lane->pipe[1] = -1;
        if (open_events(lane) == 0) {
                lane->appender = appender_new(shared, lane->pipe[1], error);
                if (lane->appender == NULL) {
                        close_lane(lane);
                        return NULL;
                }
                lane->handler = handler_new(shared, lane->appender);
                if (open_server(lane, listeners, n) == 0 &&
                    pthread_create(&lane->thread, NULL, run, lane) == 0)
                        return lane;
        }
        (void)error_set(error, "cannot start a receiver lane: out of memory, descriptors or threads");
        close_lane(lane);
        return NULL;
}

int
lane_is_ready(struct lane *lane, struct error *error)
{
        if (!appender_is_ready(lane->appender, error))
                return 0;
        if (!atomic_load(&lane->is_open))
                (void)error_set(error, "it does not accept connections yet");
        return atomic_load(&lane->is_open);
}

int
lane_is_alive(struct lane *lane, int64_t limit_ms)
{
        return heartbeat_is_alive(&lane->heartbeat, limit_ms);
}

static void
wake(struct lane *lane, char why)
{
        ssize_t written = write(lane->pipe[1], &why, 1);

        (void)written; /* a full pipe wakes the lane as well */
}

void
lane_connect(struct lane *lane, int timeout_ms)
{
        appender_connect(lane->appender, timeout_ms);
        wake(lane, WAKE_RELOAD);
}

void
lane_reload(struct lane *lane)
{
        wake(lane, WAKE_RELOAD);
}

void
lane_stop(struct lane *lane)
{
        wake(lane, WAKE_STOP);
}

int
lane_has_stopped(struct lane *lane)
{
        return atomic_load(&lane->has_stopped);
}

void
lane_free(struct lane *lane)
{
        if (lane == NULL)
                return;
        process_join(lane->thread, "receiver");
        close_lane(lane);
}
