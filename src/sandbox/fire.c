#include "sandbox/fire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/sample.h"
#include "sandbox/transport.h"

/* Sending. */

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
                        clock_monotonic_us() - delivery->due_us, result->reason);
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
        struct signed_post post = {.service = plan->service,
                                   .url = plan->url,
                                   .webhook_id = plan->webhook_id,
                                   .delivery_id = id,
                                   .timestamp = clock_now_ms() / 1000};

        delivery->run = run;
        compose(run, n, delivery, id);
        delivery->due_us = plan->rate == 0 ? clock_monotonic_us() : due_us(run, n);
        post.key = delivery->forged ? plan->wrong_key : plan->key;
        post.body = delivery->body;
        post.len = strlen(delivery->body);
        run->report->n_sent++;
        run->n_in_flight++;
        LIST_INSERT_HEAD(&run->in_flight, delivery, entry);
        if (transport_send(run->transport, &post, on_done, delivery) == NULL)
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
        run->report->latencies_us = mem_alloc(plan->count * sizeof(*run->report->latencies_us));
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
        *report = (struct fire_report){.n_sent = 0};
        (void)signal(SIGPIPE, SIG_IGN);
        result = prepare(&run);
        if (result == 0) {
                run.started_us = clock_monotonic_us();
                event_active(run.tick, EV_TIMEOUT, 0);
                (void)event_base_dispatch(run.base);
                report->took_us = clock_monotonic_us() - run.started_us;
        }
        clear(&run);
        fire_report_sort(report);
        return result;
}

/* The report. */

void
fire_report_add(struct fire_report *report, int status, int forged, int64_t latency_us, const char *reason)
{
        int accepted = status / 100 == 2;

        if (status < 0 || status > FIRE_STATUS_MAX)
                status = FIRE_STATUS_MAX;
        report->answers[status]++;
        if (status == 0 || status / 100 == 5)
                report->n_failed++;
        else if (forged && accepted)
                report->n_forged_accepted++;
        else if (!forged && !accepted)
                report->n_genuine_refused++;
        if (status == 0) {
                if (report->reason[0] == '\0')
                        (void)snprintf(report->reason, sizeof(report->reason), "%s", reason);
                return;
        }
        report->latencies_us[report->n_latencies++] =
            latency_us > UINT32_MAX ? UINT32_MAX : (uint32_t)latency_us;
}

static int
compare_latencies(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

void
fire_report_sort(struct fire_report *report)
{
        if (report->n_latencies > 0)
                qsort(report->latencies_us, report->n_latencies, sizeof(*report->latencies_us),
                      compare_latencies);
}

uint32_t
fire_report_percentile(const struct fire_report *report, unsigned percent)
{
        size_t rank = (report->n_latencies * percent + 99) / 100; /* nearest rank, counted from 1 */

        return report->n_latencies == 0 ? 0 : report->latencies_us[rank > 0 ? rank - 1 : 0];
}

static double
sent_per_second(const struct fire_report *report)
{
        return report->took_us > 0 ? (double)report->n_sent * 1e6 / (double)report->took_us : 0;
}

static void
json_decimal(struct json_writer *json, const char *name, double value)
{
        char text[64];

        (void)snprintf(text, sizeof(text), "%.3f", value);
        json_literal(json, name, text);
}

static void
json_percentile(struct json_writer *json, const struct fire_report *report, const char *name,
                unsigned percent)
{
        if (report->n_latencies == 0)
                json_null(json, name);
        else
                json_decimal(json, name, fire_report_percentile(report, percent) / 1e3);
}

static void
print_json(const struct fire_report *report)
{
        struct json_writer *json = json_new(0);
        char status[16];

        json_open_object(json, NULL);
        json_number(json, "sent", (int64_t)report->n_sent);
        json_number(json, "repeated", (int64_t)report->n_repeated);
        json_number(json, "forged", (int64_t)report->n_forged);
        json_decimal(json, "seconds", (double)report->took_us / 1e6);
        json_decimal(json, "rate", sent_per_second(report));
        json_open_object(json, "answers");
        for (int i = 1; i <= FIRE_STATUS_MAX; i++) {
                (void)snprintf(status, sizeof(status), "%d", i);
                if (report->answers[i] > 0)
                        json_number(json, status, (int64_t)report->answers[i]);
        }
        json_close_object(json);
        json_number(json, "noAnswer", (int64_t)report->answers[0]);
        json_open_object(json, "latencyMs");
        json_percentile(json, report, "p50", 50);
        json_percentile(json, report, "p99", 99);
        json_percentile(json, report, "max", 100);
        json_close_object(json);
        json_close_object(json);
        json_print(json);
}

static void
print_text(const struct fire_report *report)
{
        printf("sent       %" PRIu64 " in %.3f s, %.0f a second; %" PRIu64 " repeated, %" PRIu64 " forged\n",
               report->n_sent, (double)report->took_us / 1e6, sent_per_second(report), report->n_repeated,
               report->n_forged);
        for (int i = 1; i <= FIRE_STATUS_MAX; i++) {
                if (report->answers[i] > 0)
                        printf("status %d %" PRIu64 "\n", i, report->answers[i]);
        }
        printf("no answer  %" PRIu64 "\n", report->answers[0]);
        if (report->n_latencies == 0)
                return;
        printf("latency    p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", fire_report_percentile(report, 50) / 1e3,
               fire_report_percentile(report, 99) / 1e3, fire_report_percentile(report, 100) / 1e3);
}

void
fire_report_print(const struct fire_report *report, int json)
{
        if (json)
                print_json(report);
        else
                print_text(report);
        if (report->answers[0] > 0)
                fprintf(stderr, "gatepost-sandbox fire: no answer: %s\n", report->reason);
}

int
fire_report_exit_status(const struct fire_report *report)
{
        if (report->n_failed > 0)
                return EX_TEMPFAIL;
        return report->n_genuine_refused > 0 || report->n_forged_accepted > 0 ? EX_DATAERR : 0;
}

void
fire_report_clear(struct fire_report *report)
{
        free(report->latencies_us);
        report->latencies_us = NULL;
}
