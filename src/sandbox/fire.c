#include "sandbox/fire.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "model/sample.h"
#include "sandbox/transport.h"

struct fire_state {
        const struct fire_plan *plan;
        struct fire_report *report;
        struct event_base *base;
        struct transport *transport;
        struct event *tick; /* fires when the next delivery is due, or a connection is free */
        struct event *signals[2];
        char *last_body; /* of the previous genuine delivery, for a repeat */
        char last_id[BYTES_UUID_SIZE];
        LIST_HEAD(fire_deliveries, fire_delivery) in_flight;
        uint64_t n_in_flight;
        int64_t started_us;
        int is_ending; /* send no more */
};

/* A delivery whose answer is outstanding. */
struct fire_delivery {
        LIST_ENTRY(fire_delivery) entry;
        struct fire_state *run;
        char *body;
        int64_t due_us;
        int forged;
};

/* Return whether the nth delivery is in an evenly spread share of all deliveries. */
static int
is_in_share(uint64_t n, uint64_t percent)
{
        return (n + 1) * percent / 100 != n * percent / 100;
}

static int64_t
due_us(const struct fire_state *run, uint64_t n)
{
        return run->started_us + (run->plan->rate == 0 ? 0 : (int64_t)(n * 1000000 / run->plan->rate));
}

/* Count a delivery that has ended, and free it. */
static void
settle(struct fire_delivery *delivery, const struct transport_result *result)
{
        struct fire_state *run = delivery->run;

        fire_report_add(run->report, result->status, delivery->forged,
                        1000 * (clock_monotonic_us() - delivery->due_us), result->reason);
        run->n_in_flight--;
        LIST_REMOVE(delivery, entry);
        free(delivery->body);
        free(delivery);
}

static void
on_done(const struct transport_result *result, void *arg)
{
        struct fire_state *run = ((struct fire_delivery *)arg)->run;

        settle(arg, result);
        if (run->n_in_flight == 0 && (run->is_ending || run->report->n_sent == run->plan->count))
                (void)event_base_loopbreak(run->base);
        else
                event_active(run->tick, EV_TIMEOUT, 0);
}

/* Make the nth delivery: forged, a repeat of the previous genuine one, or a new one. */
static void
compose(struct fire_state *run, uint64_t n, struct fire_delivery *delivery, char id[BYTES_UUID_SIZE])
{
        const struct fire_plan *plan = run->plan;

        delivery->forged = is_in_share(n, plan->forged_percent);
        if (delivery->forged) {
                run->report->n_forged++;
        } else if (is_in_share(n - run->report->n_forged, plan->repeat_percent) && run->last_body != NULL) {
                run->report->n_repeated++;
                delivery->body = mem_strdup(run->last_body);
                memcpy(id, run->last_id, BYTES_UUID_SIZE);
                return;
        }
        delivery->body = sample_body(plan->kinds[n % plan->n_kinds]);
        (void)bytes_random_uuid(id);
        if (!delivery->forged) {
                free(run->last_body);
                run->last_body = mem_strdup(delivery->body);
                memcpy(run->last_id, id, BYTES_UUID_SIZE);
        }
}

static void
send_next(struct fire_state *run, uint64_t n)
{
        const struct fire_plan *plan = run->plan;
        const struct transport_result failed = {0, "out of memory"};
        struct fire_delivery *delivery = mem_alloc(sizeof(*delivery));
        char id[BYTES_UUID_SIZE];
        struct transport_attempt attempt = {.service = plan->service,
                                            .url = plan->url,
                                            .webhook_id = plan->webhook_id,
                                            .delivery_id = id,
                                            .timestamp = clock_now_ms() / 1000};

        delivery->run = run;
        compose(run, n, delivery, id);
        delivery->due_us = plan->rate == 0 ? clock_monotonic_us() : due_us(run, n);
        attempt.key = delivery->forged ? plan->wrong_key : plan->key;
        attempt.body = delivery->body;
        attempt.len = strlen(delivery->body);
        run->report->n_sent++;
        run->n_in_flight++;
        LIST_INSERT_HEAD(&run->in_flight, delivery, entry);
        if (transport_send(run->transport, &attempt, on_done, delivery) == NULL)
                on_done(&failed, delivery);
}

/* Send the deliveries that are due, while connections are free. */
static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
        struct fire_state *run = arg;
        const struct fire_plan *plan = run->plan;
        uint64_t *n_sent = &run->report->n_sent;

        (void)fd;
        (void)what;
        while (!run->is_ending && *n_sent < plan->count && run->n_in_flight < plan->connections) {
                int64_t wait_us = due_us(run, *n_sent) - clock_monotonic_us();
                const struct timeval in = {(time_t)(wait_us / 1000000), (suseconds_t)(wait_us % 1000000)};

                if (wait_us > 0) {
                        (void)evtimer_add(run->tick, &in);
                        return;
                }
                send_next(run, *n_sent);
        }
}

/* On the first signal, stop sending and wait for outstanding answers. On the second, stop at once. */
static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct fire_state *run = arg;

        (void)fd;
        (void)what;
        if (run->is_ending || run->n_in_flight == 0)
                (void)event_base_loopbreak(run->base);
        run->is_ending = 1;
}

static int
prepare(struct fire_state *run)
{
        const struct fire_plan *plan = run->plan;

        run->base = event_base_new();
        if (run->base == NULL)
                return -1;
        run->transport = transport_new(run->base, plan->ca_file, plan->connections);
        run->tick = evtimer_new(run->base, on_tick, run);
        run->signals[0] = evsignal_new(run->base, SIGTERM, on_signal, run);
        run->signals[1] = evsignal_new(run->base, SIGINT, on_signal, run);
        if (run->transport == NULL || run->tick == NULL)
                return -1;
        for (size_t i = 0; i < ARRAY_LEN(run->signals); i++) {
                if (run->signals[i] == NULL || evsignal_add(run->signals[i], NULL) != 0)
                        return -1;
        }
        return 0;
}

static void
clear(struct fire_state *run)
{
        const struct transport_result interrupted = {0, "interrupted by a signal"};
        struct fire_delivery *delivery;

        while ((delivery = LIST_FIRST(&run->in_flight)) != NULL)
                settle(delivery, &interrupted);
        transport_free(run->transport);
        if (run->tick != NULL)
                event_free(run->tick);
        for (size_t i = 0; i < ARRAY_LEN(run->signals); i++) {
                if (run->signals[i] != NULL)
                        event_free(run->signals[i]);
        }
        if (run->base != NULL)
                event_base_free(run->base);
        free(run->last_body);
}

int
fire_run(const struct fire_plan *plan, struct fire_report *report)
{
        struct fire_state run = {.plan = plan, .report = report};
        int result;

        LIST_INIT(&run.in_flight);
        (void)signal(SIGPIPE, SIG_IGN);
        result = prepare(&run);
        if (result == 0) {
                run.started_us = clock_monotonic_us();
                event_active(run.tick, EV_TIMEOUT, 0);
                (void)event_base_dispatch(run.base);
                report->took_us = clock_monotonic_us() - run.started_us;
        }
        clear(&run);
        return result;
}
