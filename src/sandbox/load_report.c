#include "sandbox/load_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"

void
load_report_add(struct load_report *report, int status, int forged, int64_t latency_us, const char *reason)
{
        int accepted = status / 100 == 2;

        if (status < 0 || status > LOAD_STATUS_MAX)
                status = LOAD_STATUS_MAX;
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
compare(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

void
load_report_sort(struct load_report *report)
{
        if (report->n_latencies > 0)
                qsort(report->latencies_us, report->n_latencies, sizeof(*report->latencies_us), compare);
}

uint32_t
load_report_percentile(const struct load_report *report, unsigned percent)
{
        size_t rank = (report->n_latencies * percent + 99) / 100; /* the nearest rank, from 1 */

        return report->n_latencies == 0 ? 0 : report->latencies_us[rank > 0 ? rank - 1 : 0];
}

static double
rate(const struct load_report *report)
{
        return report->took_us > 0 ? (double)report->n_sent * 1e6 / (double)report->took_us : 0;
}

static void
json_decimal(yajl_gen json, const char *name, double value)
{
        char text[64];
        int len = snprintf(text, sizeof(text), "%.3f", value);

        json_text(json, name);
        (void)yajl_gen_number(json, text, (size_t)len);
}

static void
json_percentile(yajl_gen json, const struct load_report *report, const char *name, unsigned percent)
{
        if (report->n_latencies == 0)
                json_null(json, name);
        else
                json_decimal(json, name, load_report_percentile(report, percent) / 1e3);
}

static void
print_json(const struct load_report *report)
{
        yajl_gen json = json_new(0);
        char status[16];

        (void)yajl_gen_map_open(json);
        json_number(json, "sent", (int64_t)report->n_sent);
        json_number(json, "repeated", (int64_t)report->n_repeated);
        json_number(json, "forged", (int64_t)report->n_forged);
        json_decimal(json, "seconds", (double)report->took_us / 1e6);
        json_decimal(json, "rate", rate(report));
        json_text(json, "answers");
        (void)yajl_gen_map_open(json);
        for (int i = 1; i <= LOAD_STATUS_MAX; i++) {
                (void)snprintf(status, sizeof(status), "%d", i);
                if (report->answers[i] > 0)
                        json_number(json, status, (int64_t)report->answers[i]);
        }
        (void)yajl_gen_map_close(json);
        json_number(json, "noAnswer", (int64_t)report->answers[0]);
        json_text(json, "latencyMs");
        (void)yajl_gen_map_open(json);
        json_percentile(json, report, "p50", 50);
        json_percentile(json, report, "p99", 99);
        json_percentile(json, report, "max", 100);
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_map_close(json);
        json_print(json);
}

static void
print_text(const struct load_report *report)
{
        printf("sent       %" PRIu64 " in %.3f s, %.0f a second; %" PRIu64 " repeated, %" PRIu64 " forged\n",
               report->n_sent, (double)report->took_us / 1e6, rate(report), report->n_repeated,
               report->n_forged);
        for (int i = 1; i <= LOAD_STATUS_MAX; i++) {
                if (report->answers[i] > 0)
                        printf("status %d %" PRIu64 "\n", i, report->answers[i]);
        }
        printf("no answer  %" PRIu64 "\n", report->answers[0]);
        if (report->n_latencies == 0)
                return;
        printf("latency    p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", load_report_percentile(report, 50) / 1e3,
               load_report_percentile(report, 99) / 1e3, load_report_percentile(report, 100) / 1e3);
}

void
load_report_print(const struct load_report *report, int json)
{
        if (json)
                print_json(report);
        else
                print_text(report);
        if (report->answers[0] > 0)
                fprintf(stderr, "gatepost-sandbox fire: no answer: %s\n", report->reason);
}

int
load_report_exit_status(const struct load_report *report)
{
        if (report->n_failed > 0)
                return EX_TEMPFAIL;
        return report->n_genuine_refused > 0 || report->n_forged_accepted > 0 ? EX_DATAERR : 0;
}

void
load_report_clear(struct load_report *report)
{
        free(report->latencies_us);
        report->latencies_us = NULL;
}
