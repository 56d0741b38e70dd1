#include "cli/status.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/own_url.h"
#include "cli/terminal.h"

#define CLEAR_SCREEN "\033[H\033[J"
#define TIMEOUT_MS 5000
#define PAGE_MAX (16u << 20)
#define LINES_MAX 20000 /* each source and each partition is searched among all lines */
#define MAX_COUNT 1e15  /* larger numbers are not counts */

static int
get(const struct own_url *endpoint, const char *path, struct http_client_answer *answer, struct error *error)
{
        char *url = mem_printf("%s%s", endpoint->url, path);
        const struct http_client_request request = {.method = "GET",
                                                    .url = url,
                                                    .socket_path = endpoint->socket_path,
                                                    .timeout_ms = TIMEOUT_MS,
                                                    .max_answer = PAGE_MAX};
        int result = http_client_call(&request, answer, error);

        if (result != 0)
                (void)error_prefix(error, "%s", url);
        free(url);
        return result;
}

/* Replace control characters, since the server may be something else than gatepostd. */
static void
make_printable(char *text)
{
        for (char *c = text; *c != '\0'; c++) {
                if (((unsigned char)*c < 0x20 && *c != '\n') || (unsigned char)*c >= 0x7f)
                        *c = '?';
        }
}

static size_t
count_lines(const char *text)
{
        size_t n = 0;

        for (; *text != '\0'; text++)
                n += *text == '\n';
        return n;
}

static void
clear_status(struct status *status)
{
        free(status->readiness);
        prometheus_clear(&status->page);
        memset(status, 0, sizeof(*status));
}

static int
read_status(const struct own_url *endpoint, struct status *status, struct error *error)
{
        struct http_client_answer ready, metrics;
        int result = 0;

        memset(status, 0, sizeof(*status));
        if (get(endpoint, "/readyz", &ready, error) != 0)
                return -1;
        if (get(endpoint, "/metrics", &metrics, error) != 0) {
                free(ready.body);
                return -1;
        }
        status->is_ready = ready.status == 200;
        status->readiness = ready.body;
        status->read_ms = clock_monotonic_ms();
        make_printable(status->readiness);
        if (count_lines(metrics.body) > LINES_MAX)
                result = error_set(error, "%s/metrics: has more than %d lines", endpoint->url, LINES_MAX);
        else if (prometheus_parse(metrics.body, &status->page, error) != 0)
                result = error_prefix(error, "%s/metrics", endpoint->url);
        else if ((ready.status != 200 && ready.status != 503) || metrics.status != 200 ||
                 prometheus_next(&status->page, "gatepost_start_time_seconds", NULL) == NULL)
                result = error_set(error, "%s: the server is not gatepostd", endpoint->url);
        free(metrics.body);
        if (result != 0)
                clear_status(status);
        return result;
}

/* Return the number of accepted requests, or of all others. */
static double
count_requests(const struct status *status, int accepted)
{
        const struct prometheus_sample *sample = NULL;
        double sum = 0;

        while ((sample = prometheus_next(&status->page, "gatepost_requests_total", sample)) != NULL) {
                if ((strcmp(prometheus_label(sample, "outcome"), "accepted") == 0) == accepted)
                        sum += sample->value;
        }
        return sum;
}

static double
difference(const struct status *status, const struct status *earlier, const char *name)
{
        return prometheus_sum(&status->page, name) - prometheus_sum(&earlier->page, name);
}

double
status_uptime(const struct status *status)
{
        double uptime =
            (double)clock_now_ms() / 1000 - prometheus_sum(&status->page, "gatepost_start_time_seconds");

        return uptime > 0 ? uptime : 0;
}

static void
compute_rates(const struct status *status, const struct status *earlier, struct status_rates *rates)
{
        static const struct status nothing;
        double seconds;

        rates->since_start =
            earlier == NULL || prometheus_sum(&earlier->page, "gatepost_start_time_seconds") !=
                                   prometheus_sum(&status->page, "gatepost_start_time_seconds");
        if (rates->since_start)
                earlier = &nothing;
        rates->seconds =
            rates->since_start ? status_uptime(status) : (double)(status->read_ms - earlier->read_ms) / 1000;
        seconds = rates->seconds < 0.001 ? 0.001 : rates->seconds;
        rates->accepted = (count_requests(status, 1) - count_requests(earlier, 1)) / seconds;
        rates->refused = (count_requests(status, 0) - count_requests(earlier, 0)) / seconds;
        rates->events = difference(status, earlier, "gatepost_events_total") / seconds;
        rates->duplicates = difference(status, earlier, "gatepost_duplicates_total") / seconds;
        rates->quarantined = difference(status, earlier, "gatepost_quarantined_total") / seconds;
}

double
status_tame(double value)
{
        return value >= -MAX_COUNT && value <= MAX_COUNT ? value : 0;
}

static struct {
        int as_json;
        int watches;
        uint64_t watch_ms;
} args = {.watch_ms = 5000};

static void
show(const struct status *status, const struct status *earlier)
{
        struct status_rates rates;

        compute_rates(status, earlier, &rates);
        if (args.as_json) {
                status_print_json(status, &rates, args.watches);
        } else {
                if (args.watches)
                        fputs(isatty(STDOUT_FILENO) ? CLEAR_SCREEN : earlier != NULL ? "\n" : "", stdout);
                status_print(status, &rates);
        }
}

/* Read and print the status, which replaces the earlier one. Returns an exit status. */
static int
ask(const struct own_url *endpoint, struct status *earlier, int *has_earlier)
{
        struct status status;
        struct error error;
        int exit_status;

        if (read_status(endpoint, &status, &error) != 0) {
                fprintf(stderr, "gatepost status: %s\n", error.text);
                return EX_UNAVAILABLE;
        }
        show(&status, *has_earlier ? earlier : NULL);
        exit_status = status.is_ready ? 0 : EX_TEMPFAIL;
        if (*has_earlier)
                clear_status(earlier);
        *earlier = status;
        *has_earlier = 1;
        return exit_status;
}

static int
run(const struct config *config)
{
        struct status earlier;
        struct own_url endpoint;
        int has_earlier = 0, exit_status;

        if (config->admin == NULL || own_url_make(config->admin, NULL, "", &endpoint) != 0) {
                fprintf(
                    stderr,
                    "gatepost status: the configuration does not say where to ask: [admin] listen is %s\n",
                    config->admin == NULL ? "off" : "at a port that only gatepostd knows");
                return EX_CONFIG;
        }
        terminal_catch_interrupts();
        exit_status = ask(&endpoint, &earlier, &has_earlier);
        while (args.watches && has_earlier && !terminal_is_interrupted() && fflush(stdout) == 0) {
                (void)poll(NULL, 0, (int)args.watch_ms);
                if (!terminal_is_interrupted())
                        exit_status = ask(&endpoint, &earlier, &has_earlier);
        }
        if (has_earlier)
                clear_status(&earlier);
        free(endpoint.url);
        return exit_status;
}

static const struct command_option options[] = {
    {"json", NULL, "print JSON", .flag = &args.as_json},
    {"watch", "[TIME]", "repeat every TIME (default: 5s)", .flag = &args.watches,
     .duration_ms = &args.watch_ms, .min = 100, .max = 86400000},
};

const struct command status_command = {
    .name = "status",
    .help = "print the state of the daemon, from its admin endpoint",
    .run = run,
    COMMAND_OPTIONS(options),
};
