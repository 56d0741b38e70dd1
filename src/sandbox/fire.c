#include "sandbox/fire.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "config/secrets.h"
#include "model/sample.h"
#include "sandbox/fire_report.h"
#include "sandbox/transport.h"

#define COUNT_MAX 10000000
#define KINDS_MAX 32

/* What `gatepost-sandbox fire` is to send. */
struct fire_plan {
        const char *url;
        const char *service; /* headers are x-<service>-signature and so on */
        const char *webhook_id;
        const char *secret_file;
        const char *ca_file; /* NULL: the system's certificates */
        struct signature_key *key;
        struct signature_key *wrong_key; /* signs the forged deliveries */
        const char *kinds[KINDS_MAX];    /* sent in turn */
        size_t n_kinds;                  /* at least 1 */
        uint64_t count;
        /* deliveries per second; 0: send as soon as a connection is free */
        uint64_t rate;
        uint64_t connections; /* maximum number of requests under way */
        /* share of the genuine deliveries that repeat the previous one, with its id */
        uint64_t repeat_percent;
        uint64_t forged_percent; /* share of all deliveries */
        char *kind_list;         /* which kinds points into */
        char own_webhook_id[BYTES_UUID_SIZE];
};

/* The arguments. */

static void
usage(FILE *out)
{
        fputs("usage: gatepost-sandbox fire --to URL --secret-file FILE [OPTION]...\n"
              "Send signed deliveries to a receiver, and report its answers and latencies.\n\n"
              "  --to URL            URL of the receiver, with the source's path\n"
              "  --secret-file FILE  file with the signing secret\n"
              "  --count N           number of deliveries (default: 100)\n"
              "  --rate N            deliveries per second (default: unlimited)\n"
              "  --kinds LIST        comma-separated event kinds, sent in turn (default: invoice.accepted)\n"
              "  --repeat PERCENT    share of genuine deliveries that repeat the previous one (default: 0)\n"
              "  --forged PERCENT    share of deliveries signed with a wrong secret (default: 0)\n"
              "  --connections N     maximum number of connections (default: 16)\n"
              "  --service WORD      the word in x-WORD-signature and so on (default: invoicing)\n"
              "  --webhook-id ID     webhook-id to send (default: a new UUID)\n"
              "  --ca-file FILE      trust these certificates instead of the system's\n"
              "  -h, --help          show this help and exit\n",
              out);
}

/* Split the comma-separated list of kinds. */
static int
set_kinds(struct fire_plan *plan, const char *text, struct error *error)
{
        char *rest = NULL;

        free(plan->kind_list);
        plan->kind_list = mem_strdup(text);
        plan->n_kinds = 0;
        for (char *kind = strtok_r(plan->kind_list, ",", &rest); kind != NULL;
             kind = strtok_r(NULL, ",", &rest)) {
                if (plan->n_kinds == KINDS_MAX)
                        return error_set(error, "at most %d kinds", KINDS_MAX);
                plan->kinds[plan->n_kinds++] = kind;
        }
        return plan->n_kinds > 0 ? 0 : error_set(error, "must name a kind, such as invoice.accepted");
}

static int
set_option(struct fire_plan *plan, int option, const char *value, struct error *error)
{
        switch (option) {
        case 't':
                plan->url = value;
                return 0;
        case 's':
                plan->secret_file = value;
                return 0;
        case 'n':
                return number_parse(value, 1, COUNT_MAX, &plan->count, error);
        case 'r':
                return number_parse(value, 1, 1000000, &plan->rate, error);
        case 'k':
                return set_kinds(plan, value, error);
        case 'R':
                return number_parse(value, 0, 100, &plan->repeat_percent, error);
        case 'f':
                return number_parse(value, 0, 100, &plan->forged_percent, error);
        case 'c':
                return number_parse(value, 1, 1000, &plan->connections, error);
        case 'S':
                plan->service = value;
                return 0;
        case 'w':
                plan->webhook_id = value;
                return 0;
        default:
                plan->ca_file = value;
                return 0;
        }
}

static int
parse(int argc, char **argv, struct fire_plan *plan)
{
        static const struct option known[] = {{"to", required_argument, NULL, 't'},
                                              {"secret-file", required_argument, NULL, 's'},
                                              {"count", required_argument, NULL, 'n'},
                                              {"rate", required_argument, NULL, 'r'},
                                              {"kinds", required_argument, NULL, 'k'},
                                              {"repeat", required_argument, NULL, 'R'},
                                              {"forged", required_argument, NULL, 'f'},
                                              {"connections", required_argument, NULL, 'c'},
                                              {"service", required_argument, NULL, 'S'},
                                              {"webhook-id", required_argument, NULL, 'w'},
                                              {"ca-file", required_argument, NULL, 'C'},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};
        struct error error;
        int option, index = 0;

        while ((option = getopt_long(argc, argv, "h", known, &index)) != -1) {
                if (option == 'h') {
                        usage(stdout);
                        return 0;
                }
                if (option == '?')
                        return EX_USAGE;
                if (set_option(plan, option, optarg, &error) != 0) {
                        fprintf(stderr, "gatepost-sandbox fire: --%s: %s\n", known[index].name, error.text);
                        return EX_USAGE;
                }
        }
        if (optind == argc && plan->url != NULL && plan->secret_file != NULL)
                return -1;
        fputs("gatepost-sandbox fire: needs --to and --secret-file, and takes options only; see --help\n",
              stderr);
        return EX_USAGE;
}

/* Read the secret, and make the keys. Returns 0, or -1 with the reason. */
static int
make_keys(struct fire_plan *plan, struct error *error)
{
        static const char wrong_secret[] = "a secret that nobody agreed upon";
        size_t len;
        char *secret = secrets_read_signing(plan->secret_file, &len, NULL, error);

        if (secret == NULL)
                return -1;
        plan->key = signature_key_new(secret, len);
        plan->wrong_key = signature_key_new(wrong_secret, sizeof(wrong_secret) - 1);
        secrets_free(secret, len);
        if (plan->key == NULL || plan->wrong_key == NULL)
                mem_exit();
        return 0;
}

/* Read the arguments, over the defaults, and the secret. Returns -1 to continue, or an exit status. */
static int
prepare(int argc, char **argv, struct fire_plan *plan)
{
        struct error error;
        int status;

        *plan = (struct fire_plan){.service = "invoicing",
                                   .kinds = {"invoice.accepted"},
                                   .n_kinds = 1,
                                   .count = 100,
                                   .connections = 16};
        plan->webhook_id = bytes_random_uuid(plan->own_webhook_id);
        status = parse(argc, argv, plan);
        if (status >= 0 || make_keys(plan, &error) == 0)
                return status;
        fprintf(stderr, "gatepost-sandbox fire: %s\n", error.text);
        return EX_NOINPUT;
}

static void
clear(struct fire_plan *plan)
{
        signature_key_free(plan->key);
        signature_key_free(plan->wrong_key);
        free(plan->kind_list);
}

/* Sending. */

struct fire_state {
        const struct fire_plan *plan;
        struct fire_report *report;
        struct event_base *base;
        struct transport *transport;
        struct event *tick; /* fires when the next delivery is due, or a connection is free */
        char *last_body;    /* of the previous genuine delivery, for a repeat */
        char last_id[BYTES_UUID_SIZE];
        uint64_t n_in_flight;
        int64_t started_us;
};

/* A delivery whose answer is outstanding. */
struct fire_delivery {
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

static void
on_done(const struct transport_result *result, void *arg)
{
        struct fire_delivery *delivery = arg;
        struct fire_state *run = delivery->run;

        fire_report_add(run->report, result->status, delivery->forged,
                        clock_monotonic_us() - delivery->due_us, result->reason);
        run->n_in_flight--;
        free(delivery->body);
        free(delivery);
        if (run->n_in_flight == 0 && run->report->n_sent == run->plan->count)
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
        while (*n_sent < plan->count && run->n_in_flight < plan->connections) {
                int64_t wait_us = due_us(run, *n_sent) - clock_monotonic_us();
                const struct timeval in = {(time_t)(wait_us / 1000000), (suseconds_t)(wait_us % 1000000)};

                if (wait_us > 0) {
                        (void)evtimer_add(run->tick, &in);
                        return;
                }
                send_next(run, *n_sent);
        }
}

/* Send all deliveries, and add them to the report. */
static void
send_all(const struct fire_plan *plan, struct fire_report *report)
{
        struct fire_state run = {.plan = plan, .report = report, .base = event_base_new()};

        if (run.base == NULL)
                mem_exit();
        run.transport = transport_new(run.base, plan->ca_file);
        run.tick = evtimer_new(run.base, on_tick, &run);
        if (run.tick == NULL)
                mem_exit();
        run.started_us = clock_monotonic_us();
        event_active(run.tick, EV_TIMEOUT, 0);
        (void)event_base_dispatch(run.base);
        report->took_us = clock_monotonic_us() - run.started_us;
        transport_free(run.transport);
        event_free(run.tick);
        event_base_free(run.base);
        free(run.last_body);
}

int
fire_main(int argc, char **argv)
{
        struct fire_report report = {0};
        struct fire_plan plan;
        int status = prepare(argc, argv, &plan);

        (void)signal(SIGPIPE, SIG_IGN);
        if (status < 0) {
                send_all(&plan, &report);
                fire_report_print(&report);
                status = fire_report_exit_status(&report);
        }
        fire_report_clear(&report);
        clear(&plan);
        return status;
}
