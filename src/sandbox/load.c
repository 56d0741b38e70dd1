#include "sandbox/load.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "model/sample.h"
#include "sandbox/signed_post.h"

struct load {
        const struct load_plan *plan;
        struct load_report *report;
        struct event_base *base;
        struct transport *transport;
        struct event *tick; /* until the next one is due, or at once */
        struct event *signals[2];
        char *last_body; /* of the genuine delivery before, for a repeat */
        char last_id[BYTES_UUID_SIZE];
        LIST_HEAD(shots, shot) shots; /* under way */
        uint64_t n_under_way;
        int64_t started_us;
        int is_ending; /* nothing more is sent */
};

/* One that is under way. */
struct shot {
        LIST_ENTRY(shot) entry;
        struct load *load;
        char *body;
        int64_t due_us;
        int forged;
};

/* Whether the nth of all is among so many percent of them, evenly spread. */
static int
is_among(uint64_t n, uint64_t percent)
{
        return (n + 1) * percent / 100 != n * percent / 100;
}

static int64_t
due_us(const struct load *load, uint64_t n)
{
        return load->started_us + (load->plan->rate == 0 ? 0 : (int64_t)(n * 1000000 / load->plan->rate));
}

/* One has ended, whichever way. */
static void
settle(struct shot *shot, const struct transport_result *result)
{
        struct load *load = shot->load;

        load_report_add(load->report, result->status, shot->forged, clock_monotonic_us() - shot->due_us,
                        result->reason);
        load->n_under_way--;
        LIST_REMOVE(shot, entry);
        free(shot->body);
        free(shot);
}

static void
on_done(const struct transport_result *result, void *arg)
{
        struct load *load = ((struct shot *)arg)->load;

        settle(arg, result);
        if (load->n_under_way == 0 && (load->is_ending || load->report->n_sent == load->plan->count))
                (void)event_base_loopbreak(load->base);
        else
                event_active(load->tick, EV_TIMEOUT, 0);
}

/* What the nth delivery is: forged, or the genuine one before once more, or a new one. */
static void
choose(struct load *load, uint64_t n, struct shot *shot, char id[BYTES_UUID_SIZE])
{
        const struct load_plan *plan = load->plan;

        shot->forged = is_among(n, plan->forged_percent);
        if (shot->forged) {
                load->report->n_forged++;
        } else if (is_among(n - load->report->n_forged, plan->repeat_percent) && load->last_body != NULL) {
                load->report->n_repeated++;
                shot->body = mem_strdup(load->last_body);
                memcpy(id, load->last_id, BYTES_UUID_SIZE);
                return;
        }
        shot->body = sample_body(plan->kinds[n % plan->n_kinds]);
        (void)bytes_random_uuid(id);
        if (!shot->forged) {
                free(load->last_body);
                load->last_body = mem_strdup(shot->body);
                memcpy(load->last_id, id, BYTES_UUID_SIZE);
        }
}

static void
fire(struct load *load, uint64_t n)
{
        const struct load_plan *plan = load->plan;
        const struct transport_result failed = {0, "out of memory"};
        struct shot *shot = mem_alloc(sizeof(*shot));
        char id[BYTES_UUID_SIZE];
        struct signed_post post = {.service = plan->service,
                                   .url = plan->url,
                                   .webhook_id = plan->webhook_id,
                                   .delivery_id = id,
                                   .timestamp = clock_now_ms() / 1000};

        shot->load = load;
        choose(load, n, shot, id);
        shot->due_us = plan->rate == 0 ? clock_monotonic_us() : due_us(load, n);
        post.key = shot->forged ? plan->wrong_key : plan->key;
        post.body = shot->body;
        post.len = strlen(shot->body);
        load->report->n_sent++;
        load->n_under_way++;
        LIST_INSERT_HEAD(&load->shots, shot, entry);
        if (signed_post_start(load->transport, &post, on_done, shot) == NULL)
                on_done(&failed, shot);
}

/* Send what is due, as far as there is room. */
static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
        struct load *load = arg;
        const struct load_plan *plan = load->plan;
        uint64_t *n_sent = &load->report->n_sent;

        (void)fd;
        (void)what;
        while (!load->is_ending && *n_sent < plan->count && load->n_under_way < plan->connections) {
                int64_t wait_us = due_us(load, *n_sent) - clock_monotonic_us();
                const struct timeval in = {(time_t)(wait_us / 1000000), (suseconds_t)(wait_us % 1000000)};

                if (wait_us > 0) {
                        (void)evtimer_add(load->tick, &in);
                        return;
                }
                fire(load, *n_sent);
        }
}

/* The first signal: send no more, and wait for the answers to what was sent. The second: do not wait. */
static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct load *load = arg;

        (void)fd;
        (void)what;
        if (load->is_ending || load->n_under_way == 0)
                (void)event_base_loopbreak(load->base);
        load->is_ending = 1;
}

static int
prepare(struct load *load)
{
        const struct load_plan *plan = load->plan;

        load->base = event_base_new();
        if (load->base == NULL)
                return -1;
        load->transport = transport_new(load->base, plan->ca_file, plan->connections);
        load->tick = evtimer_new(load->base, on_tick, load);
        load->signals[0] = evsignal_new(load->base, SIGTERM, on_signal, load);
        load->signals[1] = evsignal_new(load->base, SIGINT, on_signal, load);
        if (load->transport == NULL || load->tick == NULL)
                return -1;
        for (size_t i = 0; i < ARRAY_LEN(load->signals); i++) {
                if (load->signals[i] == NULL || evsignal_add(load->signals[i], NULL) != 0)
                        return -1;
        }
        load->report->latencies_us = mem_alloc(plan->count * sizeof(*load->report->latencies_us));
        return 0;
}

static void
clear(struct load *load)
{
        const struct transport_result broken_off = {0, "broken off by a signal"};
        struct shot *shot;

        while ((shot = LIST_FIRST(&load->shots)) != NULL)
                settle(shot, &broken_off);
        transport_free(load->transport);
        if (load->tick != NULL)
                event_free(load->tick);
        for (size_t i = 0; i < ARRAY_LEN(load->signals); i++) {
                if (load->signals[i] != NULL)
                        event_free(load->signals[i]);
        }
        if (load->base != NULL)
                event_base_free(load->base);
        free(load->last_body);
}

int
load_run(const struct load_plan *plan, struct load_report *report)
{
        struct load load = {.plan = plan, .report = report};
        int result;

        LIST_INIT(&load.shots);

        *report = (struct load_report){.n_sent = 0};
        (void)signal(SIGPIPE, SIG_IGN);
        result = prepare(&load);
        if (result == 0) {
                load.started_us = clock_monotonic_us();
                event_active(load.tick, EV_TIMEOUT, 0);
                (void)event_base_dispatch(load.base);
                report->took_us = clock_monotonic_us() - load.started_us;
        }
        clear(&load);
        load_report_sort(report);
        return result;
}
