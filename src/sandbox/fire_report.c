#include "sandbox/fire_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/mem.h"

#define GROWTH 65536 /* of the array of latencies */

void
fire_report_add(struct fire_report *report, int status, int forged, int64_t latency_us, const char *reason)
{
        int accepted = status / 100 == 2;

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
        if (report->n_latencies % GROWTH == 0)
                report->latencies_us = mem_resize(report->latencies_us, report->n_latencies + GROWTH,
                                                  sizeof(*report->latencies_us));
        report->latencies_us[report->n_latencies++] = latency_us;
}

static double
sent_per_second(const struct fire_report *report)
{
        return report->took_us > 0 ? (double)report->n_sent * 1e6 / (double)report->took_us : 0;
}

static int
compare_latencies(const void *a, const void *b)
{
        int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

        return (first > second) - (first < second);
}

/* Return the latency that this share of all deliveries did not exceed: the nearest rank. */
static double
latency_ms(const struct fire_report *report, unsigned percent)
{
        size_t rank = (report->n_latencies * percent + 99) / 100;

        return (double)report->latencies_us[rank - 1] / 1000;
}

void
fire_report_print(struct fire_report *report)
{
        printf("sent       %" PRIu64 " in %.3f s, %.0f a second; %" PRIu64 " repeated, %" PRIu64 " forged\n",
               report->n_sent, (double)report->took_us / 1e6, sent_per_second(report), report->n_repeated,
               report->n_forged);
        for (int i = 1; i <= FIRE_REPORT_STATUS_MAX; i++) {
                if (report->answers[i] > 0)
                        printf("status %d %" PRIu64 "\n", i, report->answers[i]);
        }
        printf("no answer  %" PRIu64 "\n", report->answers[0]);
        if (report->n_latencies > 0) {
                qsort(report->latencies_us, report->n_latencies, sizeof(*report->latencies_us),
                      compare_latencies);
                printf("latency    p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", latency_ms(report, 50),
                       latency_ms(report, 99), latency_ms(report, 100));
        }
        if (report->answers[0] > 0)
                fprintf(stderr, "gatepost-sandbox fire: no answer: %s\n", report->reason);
}

void
fire_report_clear(struct fire_report *report)
{
        free(report->latencies_us);
}

int
fire_report_exit_status(const struct fire_report *report)
{
        if (report->n_failed > 0)
                return EX_TEMPFAIL;
        return report->n_genuine_refused > 0 || report->n_forged_accepted > 0 ? EX_DATAERR : 0;
}
