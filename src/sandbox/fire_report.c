#include "sandbox/fire_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/json.h"

void
fire_report_add(struct fire_report *report, int status, int forged, int64_t latency_ns, const char *reason)
{
        int accepted = status / 100 == 2;

        if (status < 0 || status > FIRE_REPORT_STATUS_MAX)
                status = FIRE_REPORT_STATUS_MAX;
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
        latencies_add(&report->latencies, (uint64_t)latency_ns);
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

static double
latency_ms(const struct fire_report *report, unsigned per_mille)
{
        return (double)latencies_at(&report->latencies, per_mille) / 1e6;
}

static void
json_latency(struct json_writer *json, const struct fire_report *report, const char *name, unsigned per_mille)
{
        if (report->latencies.n == 0)
                json_null(json, name);
        else
                json_decimal(json, name, latency_ms(report, per_mille));
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
        for (int i = 1; i <= FIRE_REPORT_STATUS_MAX; i++) {
                (void)snprintf(status, sizeof(status), "%d", i);
                if (report->answers[i] > 0)
                        json_number(json, status, (int64_t)report->answers[i]);
        }
        json_close_object(json);
        json_number(json, "noAnswer", (int64_t)report->answers[0]);
        json_open_object(json, "latencyMs");
        json_latency(json, report, "p50", 500);
        json_latency(json, report, "p99", 990);
        json_latency(json, report, "max", 1000);
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
        for (int i = 1; i <= FIRE_REPORT_STATUS_MAX; i++) {
                if (report->answers[i] > 0)
                        printf("status %d %" PRIu64 "\n", i, report->answers[i]);
        }
        printf("no answer  %" PRIu64 "\n", report->answers[0]);
        if (report->latencies.n > 0)
                printf("latency    p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", latency_ms(report, 500),
                       latency_ms(report, 990), latency_ms(report, 1000));
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
