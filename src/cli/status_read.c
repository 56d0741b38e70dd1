#include "cli/status_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/transfer.h"

#define TIMEOUT_MS 5000L
#define PAGE_MAX (16u << 20)
#define LINES_MAX 20000 /* each source and each partition is looked for among all */
#define MOST 1e15       /* beyond it a number is no count */

static int
ask(const struct own_url *endpoint, const char *path, struct transfer_answer *answer, struct error *error)
{
        char *url = mem_printf("%s%s", endpoint->url, path);
        const struct transfer transfer = {url, endpoint->socket_path, NULL, TIMEOUT_MS, PAGE_MAX};
        int result = transfer_get(&transfer, answer, error);

        free(url);
        return result;
}

/* Who listens there need not be gatepostd: what is printed must not play tricks on a terminal. */
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

int
status_read(const struct own_url *endpoint, struct status *status, struct error *error)
{
        struct transfer_answer ready, metrics;
        int result = 0;

        memset(status, 0, sizeof(*status));
        if (ask(endpoint, "/readyz", &ready, error) != 0)
                return -1;
        if (ask(endpoint, "/metrics", &metrics, error) != 0) {
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
                result = error_set(error, "%s: what answers there is not gatepostd", endpoint->url);
        free(metrics.body);
        if (result != 0)
                status_clear(status);
        return result;
}

void
status_clear(struct status *status)
{
        free(status->readiness);
        prometheus_clear(&status->page);
        memset(status, 0, sizeof(*status));
}

/* The requests that were accepted, or the others. */
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

void
status_rates(const struct status *status, const struct status *earlier, struct status_rates *rates)
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
        return value >= -MOST && value <= MOST ? value : 0;
}
