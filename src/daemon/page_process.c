#include <string.h>

#include "base/compiler.h"
#include "base/duration.h"
#include "daemon/page_view.h"
#include "daemon/page_write.h"

void
page_put_kafka(FILE *out, const struct page_view *view)
{
        fputs(prometheus_sum(&view->metrics, "gatepost_kafka_reachable") > 0 ? "reachable" : "away", out);
}

/* The sample of a metric that has this value of the label, or NULL. */
static const struct prometheus_sample *
find(const struct page_view *view, const char *metric, const char *label, const char *value)
{
        const struct prometheus_sample *sample = NULL;

        while ((sample = prometheus_next(&view->metrics, metric, sample)) != NULL) {
                if (strcmp(prometheus_label(sample, label), value) == 0)
                        return sample;
        }
        return NULL;
}

void
page_put_brokers(FILE *out, const struct page_view *view)
{
        const struct prometheus_sample *sample = NULL;
        int n = 0;

        while ((sample = prometheus_next(&view->metrics, "gatepost_kafka_broker_up", sample)) != NULL) {
                const char *broker = prometheus_label(sample, "broker");
                const struct prometheus_sample *rtt =
                    find(view, "gatepost_kafka_broker_rtt_seconds", "broker", broker);

                fprintf(out, "<tr class=\"words%s\"><th scope=\"row\">", sample->value > 0 ? "" : " down");
                page_write_name(out, broker);
                fprintf(out, "</th><td>%s</td><td>", sample->value > 0 ? "connected" : "down");
                if (rtt == NULL)
                        fputs("–", out);
                else
                        duration_print_precise(out, rtt->value);
                fputs("</td></tr>\n", out);
                n++;
        }
        if (n == 0)
                fputs("<tr class=\"words\"><th scope=\"row\">none known yet</th><td>–</td><td>–</td></tr>\n",
                      out);
}

/* What Kafka's client does for each role. */
void
page_put_clients(FILE *out, const struct page_view *view)
{
        static const char *const metrics[] = {
            "gatepost_kafka_requests_total",
            "gatepost_kafka_request_errors_total",
            "gatepost_kafka_request_timeouts_total",
            "gatepost_kafka_queue_records",
        };
        const struct prometheus_sample *client = NULL;

        while ((client = prometheus_next(&view->metrics, metrics[0], client)) != NULL) {
                fputs("<tr><th scope=\"row\">", out);
                page_write_name(out, prometheus_label(client, "client"));
                fputs("</th>", out);
                for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
                        const struct prometheus_sample *sample =
                            find(view, metrics[i], "client", prometheus_label(client, "client"));

                        fputs("<td>", out);
                        page_write_count(out, sample == NULL ? 0 : sample->value);
                        fputs("</td>", out);
                }
                fputs("</tr>\n", out);
        }
}

static void
write_secret(FILE *out, const struct prometheus_sample *sample)
{
        fputs("<tr class=\"words\"><th scope=\"row\">", out);
        page_write_name(out, prometheus_label(sample, "source"));
        fputs(", ", out);
        page_write_name(out, prometheus_label(sample, "file"));
        fputs("</th><td>", out);
        duration_print(out, sample->value);
        fputs(" old</td></tr>\n", out);
}

static void
write_certificate(FILE *out, double left_s)
{
        fprintf(out, "<tr class=\"words%s\"><th scope=\"row\">TLS certificate</th><td>",
                left_s > 0 ? "" : " down");
        if (left_s > 0)
                duration_print(out, left_s);
        fprintf(out, "%s</td></tr>\n", left_s > 0 ? " left" : "expired");
}

void
page_put_keys(FILE *out, const struct page_view *view)
{
        const struct prometheus_sample *sample = NULL;

        while ((sample = prometheus_next(&view->metrics, "gatepost_secret_age_seconds", sample)) != NULL)
                write_secret(out, sample);
        sample = prometheus_next(&view->metrics, "gatepost_tls_certificate_expiry_timestamp_seconds", NULL);
        if (sample != NULL)
                write_certificate(out, sample->value - (double)view->facts->now_ms / 1000);
}

/* This program's and its libraries', as the labels of the build name them. */
void
page_put_versions(FILE *out, const struct page_view *view)
{
        const struct prometheus_sample *build = prometheus_next(&view->metrics, "gatepost_build_info", NULL);

        for (size_t i = 0; build != NULL && i < build->n_labels; i++) {
                const char *name = build->labels[i].name;

                fputs("<tr class=\"words\"><th scope=\"row\">", out);
                page_write_name(out, strcmp(name, "version") == 0 ? "gatepostd" : name);
                fputs("</th><td>", out);
                page_write_text(out, build->labels[i].value);
                fputs("</td></tr>\n", out);
        }
}
