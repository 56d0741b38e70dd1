#include <event2/event.h>
#include <librdkafka/rdkafka.h>
#include <openssl/crypto.h>
#include <yajl/yajl_version.h>

#include "base/duration.h"
#include "ops/page_view.h"
#include "ops/page_write.h"

void
page_put_kafka(FILE *out, const struct page_view *view)
{
        fputs(prometheus_sum(&view->metrics, "gatepost_kafka_reachable") > 0 ? "reachable" : "away", out);
}

void
page_put_brokers(FILE *out, const struct page_view *view)
{
        const struct prometheus_sample *sample = NULL;
        int n = 0;

        while ((sample = prometheus_next(&view->metrics, "gatepost_kafka_broker_up", sample)) != NULL) {
                fprintf(out, "<tr class=\"words%s\"><th scope=\"row\">", sample->value > 0 ? "" : " down");
                page_write_name(out, prometheus_label(sample, "broker"));
                fprintf(out, "</th><td>%s</td></tr>\n", sample->value > 0 ? "connected" : "down");
                n++;
        }
        if (n == 0)
                fputs("<tr class=\"words\"><th scope=\"row\">none known yet</th><td>–</td></tr>\n", out);
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

static void
write_version(FILE *out, const char *name, const char *version)
{
        fprintf(out, "<tr class=\"words\"><th scope=\"row\">%s</th><td>", name);
        page_write_text(out, version);
        fputs("</td></tr>\n", out);
}

void
page_put_versions(FILE *out, const struct page_view *view)
{
        char yajl[32];
        int version = yajl_version();

        (void)view;
        (void)snprintf(yajl, sizeof(yajl), "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
        write_version(out, "gatepostd", PACKAGE_VERSION);
        write_version(out, "librdkafka", rd_kafka_version_str());
        write_version(out, "libevent", event_get_version());
        write_version(out, "OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING));
        write_version(out, "yajl", yajl);
}
