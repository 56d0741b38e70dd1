/*
 * Sends signed deliveries, at a rate or as fast as they are answered, and reports their number and latency.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sysexits.h>
#include <time.h>

#include <openssl/ssl.h>

#include "arguments.h"
#include "client.h"
#include "deliveries.h"
#include "latencies.h"

#define SECOND_NS INT64_C(1000000000)
#define MAX_EVENTS 256

struct result {
        struct latencies latencies; /* of answers 200 */
        uint64_t statuses[600];
        uint64_t n_broken; /* connections */
        int64_t begun_ns;
        int64_t took_ns;
        /* Until end_measuring(), the clocks at the beginning. */
        int64_t cpu_ns[ARGUMENTS_MAX_PROCESSES];
        int64_t own_cpu_ns;
};

struct load {
        const struct arguments *args;
        struct deliveries *deliveries;
        struct client *clients;
        struct client *idle; /* a list */
        size_t next;         /* number of the next delivery */
        int64_t due_ns;      /* of the next, at a rate */
        int epoll;
        int64_t begun_ns; /* when the first was due, in the warm-up */
        struct result result;
};

static int64_t
clock_ns(clockid_t clock)
{
        struct timespec now;

        if (clock_gettime(clock, &now) != 0) {
                fprintf(stderr, "load: a process given by --process has ended\n");
                exit(EX_UNAVAILABLE);
        }
        return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void
begin_measuring(struct load *load)
{
        struct result *result = &load->result;

        memset(result, 0, sizeof(*result));
        result->begun_ns = clock_ns(CLOCK_MONOTONIC);
        result->own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (size_t i = 0; i < load->args->n_processes; i++)
                result->cpu_ns[i] = clock_ns(load->args->processes[i]);
}

static void
end_measuring(struct load *load)
{
        struct result *result = &load->result;

        result->took_ns = clock_ns(CLOCK_MONOTONIC) - result->begun_ns;
        result->own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - result->own_cpu_ns;
        for (size_t i = 0; i < load->args->n_processes; i++)
                result->cpu_ns[i] = clock_ns(load->args->processes[i]) - result->cpu_ns[i];
}

/* Send the next delivery on an idle connection. */
static void
send_next(struct load *load, struct client *client, int64_t due_ns)
{
        if (load->next == load->args->spec.n) {
                if (!load->args->wraps) {
                        fprintf(
                            stderr,
                            "load: all %zu deliveries have been sent; increase --deliveries, or use --wrap\n",
                            load->next);
                        exit(EX_USAGE);
                }
                load->next = 0;
        }
        deliveries_number(load->deliveries, load->next++, client->request);
        client->due_ns = due_ns;
        client_send(client, load->epoll);
}

/*
 * Send what is due. At a rate, a delivery that must wait for an idle connection counts that time as latency.
 */
static void
send_due(struct load *load, int64_t now_ns)
{
        while (load->due_ns <= now_ns && load->idle != NULL) {
                struct client *client = load->idle;

                load->idle = client->next;
                send_next(load, client, load->due_ns);
                load->due_ns += SECOND_NS / (int64_t)load->args->rate;
        }
}

static void
count_answer(struct load *load, struct client *client, int status)
{
        int64_t now_ns = clock_ns(CLOCK_MONOTONIC);

        if (status > 0 && status < 600)
                load->result.statuses[status]++;
        else
                load->result.n_broken++;
        if (status == 200)
                latencies_add(&load->result.latencies, (uint64_t)(now_ns - client->due_ns));
        if (load->args->rate == 0) {
                send_next(load, client, now_ns);
        } else {
                client->next = load->idle;
                load->idle = client;
        }
}

static void
handle_events(struct load *load, int64_t until_ns)
{
        struct epoll_event events[MAX_EVENTS];
        int64_t wait_ns = until_ns - clock_ns(CLOCK_MONOTONIC);
        struct timespec wait;
        int n;

        if (wait_ns < 0)
                wait_ns = 0;
        wait = (struct timespec){wait_ns / SECOND_NS, wait_ns % SECOND_NS};
        n = epoll_pwait2(load->epoll, events, MAX_EVENTS, &wait, NULL);
        for (int i = 0; i < n; i++) {
                struct client *client = events[i].data.ptr;
                int status = client_handle(client, load->epoll, events[i].events);

                if (status != 0)
                        count_answer(load, client, status);
        }
}

/* Run until a point in time. */
static void
run_until(struct load *load, int64_t until_ns)
{
        int64_t now_ns;

        while ((now_ns = clock_ns(CLOCK_MONOTONIC)) < until_ns) {
                int64_t next_ns = until_ns;

                if (load->args->rate > 0) {
                        send_due(load, now_ns);
                        if (load->idle != NULL && load->due_ns < next_ns)
                                next_ns = load->due_ns;
                }
                handle_events(load, next_ns);
        }
}

static SSL_CTX *
make_tls(void)
{
        SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

        if (tls == NULL)
                exit(EX_OSERR);
        SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        return tls;
}

static void
open_clients(struct load *load)
{
        const struct arguments *args = load->args;
        SSL_CTX *tls = args->with_tls ? make_tls() : NULL;

        load->epoll = epoll_create1(EPOLL_CLOEXEC);
        load->clients = calloc(args->n_connections, sizeof(*load->clients));
        for (size_t i = 0; load->clients != NULL && i < args->n_connections; i++) {
                struct client *client = &load->clients[i];

                client->address = args->address;
                client->tls = tls;
                client->request_len = deliveries_len(load->deliveries);
                client->request = malloc(client->request_len);
                if (client->request == NULL)
                        exit(EX_OSERR);
                deliveries_begin(load->deliveries, client->request);
                client_open(client, load->epoll);
                client->next = load->idle;
                load->idle = client;
        }
        SSL_CTX_free(tls);
}

static void
close_clients(struct load *load)
{
        for (size_t i = 0; i < load->args->n_connections; i++) {
                client_close(&load->clients[i]);
                free(load->clients[i].request);
        }
        free(load->clients);
        deliveries_free(load->deliveries);
}

/* Print the result as a JSON object. */
static void
report(const struct load *load)
{
        const struct result *result = &load->result;
        double seconds = (double)result->took_ns / 1e9;
        int64_t behind_ns = clock_ns(CLOCK_MONOTONIC) - load->due_ns;

        printf("{\"seconds\": %.3f, \"statuses\": {", seconds);
        for (size_t i = 0, n = 0; i < 600; i++) {
                if (result->statuses[i] > 0)
                        printf("%s\"%zu\": %" PRIu64, n++ == 0 ? "" : ", ", i, result->statuses[i]);
        }
        printf("}, \"broken\": %" PRIu64 ", \"behind\": %" PRId64 ", \"own_cpu_s\": %.4f, \"cpu_s\": [",
               result->n_broken, load->args->rate > 0 ? behind_ns * (int64_t)load->args->rate / SECOND_NS : 0,
               (double)result->own_cpu_ns / 1e9);
        for (size_t i = 0; i < load->args->n_processes; i++)
                printf("%s%.4f", i == 0 ? "" : ", ", (double)result->cpu_ns[i] / 1e9);
        printf("], \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f, \"begun_s\": "
               "%.6f}\n",
               (double)latencies_at(&result->latencies, 500) / 1e6,
               (double)latencies_at(&result->latencies, 990) / 1e6,
               (double)latencies_at(&result->latencies, 999) / 1e6, (double)result->latencies.max_ns / 1e6,
               (double)load->begun_ns / 1e9);
}

static void
run(const struct arguments *args)
{
        struct load load = {.args = args, .deliveries = deliveries_new(&args->spec)};

        open_clients(&load);
        load.begun_ns = clock_ns(CLOCK_MONOTONIC);
        load.due_ns = load.begun_ns;
        while (args->rate == 0 && load.idle != NULL) {
                struct client *client = load.idle;

                load.idle = client->next;
                send_next(&load, client, load.begun_ns);
        }
        run_until(&load, load.begun_ns + (int64_t)args->warm_up_ms * 1000000);
        begin_measuring(&load);
        run_until(&load, load.result.begun_ns + (int64_t)args->time_ms * 1000000);
        end_measuring(&load);
        report(&load);
        close_clients(&load);
}

int
main(int argc, char **argv)
{
        struct arguments args;

        arguments_parse(argc, argv, &args);
        run(&args);
        return 0;
}
