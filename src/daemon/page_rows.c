#include <string.h>

#include "base/duration.h"
#include "daemon/page_view.h"
#include "daemon/page_write.h"

#define REQUESTS "gatepost_requests_total"

/* Requests come to one of three ends. */
enum end { ACCEPTED, REFUSED, FAILED, N_ENDS };

static const char *const end_keys[N_ENDS] = {"accepted", "refused", "failed"};

static enum end
end_of(const char *outcome)
{
        if (strcmp(outcome, "accepted") == 0)
                return ACCEPTED;
        return strcmp(outcome, "unavailable") == 0 || strcmp(outcome, "error") == 0 ? FAILED : REFUSED;
}

static int
has_label(const struct prometheus_sample *sample, const char *label, const char *value)
{
        return strcmp(prometheus_label(sample, label), value) == 0;
}

/* The sum of the samples that have this value of the label. */
static double
sum_where(const struct prometheus *metrics, const char *name, const char *label, const char *value)
{
        const struct prometheus_sample *sample = NULL;
        double sum = 0;

        while ((sample = prometheus_next(metrics, name, sample)) != NULL) {
                if (has_label(sample, label, value))
                        sum += sample->value;
        }
        return sum;
}

/* A row whose number the script follows: as a rate, or as it is. */
static void
write_row(FILE *out, const char *name, const char *prefix, const char *key, double count, int is_level)
{
        fprintf(out, "<tr data-row=\"%s\"%s><th scope=\"row\">", is_level ? "level" : "rate",
                count == 0 ? " class=\"nil\"" : "");
        page_write_name(out, name);
        fputs("</th><td>", out);
        page_write_data(out, prefix, key, count);
        fputs("</td><td class=\"live\" data-live></td><td class=\"live\" data-live></td></tr>\n", out);
}

/* A row for each value of the label that a metric has. */
static void
write_rows(FILE *out, const struct prometheus *metrics, const char *metric, const char *label,
           const char *prefix)
{
        const struct prometheus_sample *sample = NULL;

        while ((sample = prometheus_next(metrics, metric, sample)) != NULL)
                write_row(out, prometheus_label(sample, label), prefix, prometheus_label(sample, label),
                          sample->value, 0);
}

void
page_put_outcomes(FILE *out, const struct page_view *view)
{
        const struct prometheus *metrics = &view->metrics;
        const struct prometheus_sample *first = prometheus_next(metrics, REQUESTS, NULL), *sample = NULL;

        while ((sample = prometheus_next(metrics, REQUESTS, sample)) != NULL) {
                const char *outcome = prometheus_label(sample, "outcome");

                if (has_label(sample, "source", prometheus_label(first, "source")))
                        write_row(out, outcome, "outcome/", outcome,
                                  sum_where(metrics, REQUESTS, "outcome", outcome), 0);
        }
}

/* The requests to a source, or to all: NULL. */
static void
count_ends(const struct prometheus *metrics, const char *source, double counts[N_ENDS])
{
        const struct prometheus_sample *sample = NULL;

        memset(counts, 0, N_ENDS * sizeof(*counts));
        while ((sample = prometheus_next(metrics, REQUESTS, sample)) != NULL) {
                if (source == NULL || has_label(sample, "source", source))
                        counts[end_of(prometheus_label(sample, "outcome"))] += sample->value;
        }
}

static void
write_source(FILE *out, const struct prometheus *metrics, const char *source)
{
        double counts[N_ENDS];

        count_ends(metrics, source, counts);
        fputs("<tr><th scope=\"row\">", out);
        page_write_name(out, *source == '\0' ? "no source" : source);
        fputs("</th>", out);
        for (size_t i = 0; i < N_ENDS; i++) {
                fputs("<td>", out);
                page_write_count(out, counts[i]);
                fputs("</td>", out);
        }
        fputs("</tr>\n", out);
}

/* The samples of a source stand together. */
void
page_put_sources(FILE *out, const struct page_view *view)
{
        const struct prometheus *metrics = &view->metrics;
        const struct prometheus_sample *sample = NULL;
        const char *source = NULL;

        while ((sample = prometheus_next(metrics, REQUESTS, sample)) != NULL) {
                if (source != NULL && has_label(sample, "source", source))
                        continue;
                source = prometheus_label(sample, "source");
                write_source(out, metrics, source);
        }
}

void
page_put_all_sources(FILE *out, const struct page_view *view)
{
        const struct prometheus *metrics = &view->metrics;
        double counts[N_ENDS];

        count_ends(metrics, NULL, counts);
        fputs("<tr><th scope=\"row\">all sources</th>", out);
        for (size_t i = 0; i < N_ENDS; i++) {
                fputs("<td>", out);
                page_write_data(out, "requests/", end_keys[i], counts[i]);
                fputs("</td>", out);
        }
        fputs("</tr>\n", out);
}

void
page_put_kinds(FILE *out, const struct page_view *view)
{
        write_rows(out, &view->metrics, "gatepost_events_total", "kind", "event/");
}

void
page_put_all_kinds(FILE *out, const struct page_view *view)
{
        write_row(out, "all kinds", "", "events", prometheus_sum(&view->metrics, "gatepost_events_total"), 0);
}

void
page_put_reasons(FILE *out, const struct page_view *view)
{
        write_rows(out, &view->metrics, "gatepost_quarantined_total", "reason", "reason/");
}

void
page_put_all_reasons(FILE *out, const struct page_view *view)
{
        write_row(out, "all reasons", "", "quarantined",
                  prometheus_sum(&view->metrics, "gatepost_quarantined_total"), 0);
}

/* For how long the oldest of the records that wait has done so. */
static void
write_oldest(FILE *out, const struct prometheus *metrics)
{
        static const char name[] = "gatepost_router_oldest_record_age_seconds";

        if (prometheus_next(metrics, name, NULL) == NULL)
                return;
        fputs("<tr><th scope=\"row\">oldest of them waits</th><td>", out);
        duration_print_precise(out, prometheus_sum(metrics, name));
        fputs("</td><td class=\"live\"></td><td class=\"live\"></td></tr>\n", out);
}

void
page_put_partitions(FILE *out, const struct page_view *view)
{
        const struct prometheus_sample *sample = NULL;

        while ((sample = prometheus_next(&view->metrics, "gatepost_router_partition_state", sample)) !=
               NULL) {
                const char *partition = prometheus_label(sample, "partition");
                const char *state = prometheus_label(sample, "state");
                int is_well = strcmp(state, "routing") == 0 || strcmp(state, "restoring") == 0;

                fprintf(out, "<tr class=\"words%s\"><th scope=\"row\">", is_well ? "" : " down");
                page_write_name(out, partition);
                fputs("</th><td>", out);
                page_write_text(out, state);
                fputs("</td><td>", out);
                page_write_text(out, prometheus_label(sample, "cause"));
                fputs("</td><td>", out);
                page_write_count(out, sum_where(&view->metrics, "gatepost_router_partition_lag_records",
                                                "partition", partition));
                fputs("</td></tr>\n", out);
        }
}

void
page_put_work(FILE *out, const struct page_view *view)
{
        const struct prometheus *metrics = &view->metrics;
        static const char transactions[] = "gatepost_transactions_total";

        write_row(out, "records that wait (lag)", "", "lag",
                  prometheus_sum(metrics, "gatepost_router_lag_records"), 1);
        write_oldest(out, metrics);
        write_row(out, "repeats dropped", "", "duplicates",
                  prometheus_sum(metrics, "gatepost_duplicates_total"), 0);
        write_row(out, "transactions committed", "", "committed",
                  sum_where(metrics, transactions, "result", "committed"), 0);
        write_row(out, "transactions aborted", "", "aborted",
                  sum_where(metrics, transactions, "result", "aborted"), 0);
        write_row(out, "delivery-ids remembered", "", "remembered",
                  prometheus_sum(metrics, "gatepost_remembered_ids"), 1);
}
