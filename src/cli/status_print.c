#include "cli/status_print.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define MOST 1e15 /* beyond it a number is no count */

/* A value as a number that can be shown: who answers need not be gatepostd. */
static double
tame(double value)
{
        return value >= -MOST && value <= MOST ? value : 0;
}

/* A time as a person says it: 3 d 4 h, 5 h 12 min, 47 s. */
static void
print_duration(double seconds)
{
        unsigned long s = seconds > 0 ? (unsigned long)tame(seconds) : 0;

        if (s >= 2 * 86400)
                printf("%lu d %lu h", s / 86400, s % 86400 / 3600);
        else if (s >= 3600)
                printf("%lu h %lu min", s / 3600, s % 3600 / 60);
        else if (s >= 60)
                printf("%lu min %lu s", s / 60, s % 60);
        else
                printf("%lu s", s);
}

/* The outcomes of a source's requests; those that never came to pass are left out. */
static void
print_outcomes(const struct status *status, const char *source)
{
        const struct prometheus_sample *sample = NULL;
        int n = 0;

        printf("  %-24s", *source == '\0' ? "(no source)" : source);
        while ((sample = prometheus_next(&status->page, "gatepost_requests_total", sample)) != NULL) {
                if (strcmp(prometheus_label(sample, "source"), source) != 0 || sample->value == 0)
                        continue;
                printf("%s %s %.0f", n++ > 0 ? "," : "", prometheus_label(sample, "outcome"), sample->value);
        }
        printf("%s\n", n > 0 ? "" : " none");
}

/* The samples of a source stand together. */
static void
print_requests(const struct status *status)
{
        const struct prometheus_sample *sample = NULL;
        const char *source = NULL;

        while ((sample = prometheus_next(&status->page, "gatepost_requests_total", sample)) != NULL) {
                if (source == NULL)
                        printf("requests\n");
                if (source == NULL || strcmp(prometheus_label(sample, "source"), source) != 0) {
                        source = prometheus_label(sample, "source");
                        print_outcomes(status, source);
                }
        }
}

/* A line for each value of the label that has a count, below the title. */
static void
print_counts(const struct status *status, const char *title, const char *name, const char *label)
{
        const struct prometheus_sample *sample = NULL;

        if (prometheus_next(&status->page, name, NULL) == NULL)
                return;
        printf("%s%s\n", title, prometheus_sum(&status->page, name) > 0 ? "" : ": none");
        while ((sample = prometheus_next(&status->page, name, sample)) != NULL) {
                if (sample->value != 0)
                        printf("  %-24s %.0f\n", prometheus_label(sample, label), sample->value);
        }
}

static void
print_router(const struct status *status)
{
        const struct prometheus_sample *sample = NULL;

        if (prometheus_next(&status->page, "gatepost_router_lag_records", NULL) == NULL)
                return;
        print_counts(status, "events", "gatepost_events_total", "kind");
        printf("duplicates: %.0f\n", prometheus_sum(&status->page, "gatepost_duplicates_total"));
        print_counts(status, "quarantined", "gatepost_quarantined_total", "reason");
        printf("transactions:");
        for (int n = 0;
             (sample = prometheus_next(&status->page, "gatepost_transactions_total", sample)) != NULL; n++)
                printf("%s %.0f %s", n > 0 ? "," : "", sample->value, prometheus_label(sample, "result"));
        printf("\nlag: %.0f records\n", prometheus_sum(&status->page, "gatepost_router_lag_records"));
        printf("remembered ids: %.0f\n", prometheus_sum(&status->page, "gatepost_remembered_ids"));
}

static void
print_secrets(const struct status *status)
{
        const struct prometheus_sample *sample = NULL;
        int n = 0;

        while ((sample = prometheus_next(&status->page, "gatepost_secret_age_seconds", sample)) != NULL) {
                printf("%s  %-24s ", n++ == 0 ? "secrets, by their age\n" : "",
                       prometheus_label(sample, "source"));
                print_duration(sample->value);
                putchar('\n');
        }
}

void
status_print(const struct status *status, const struct status_rates *rates)
{
        printf("%s, up ", status->is_ready ? "ready" : "not ready");
        print_duration(status_uptime(status));
        putchar('\n');
        for (const char *line = status->readiness; *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n')
                printf("  %.*s\n", (int)strcspn(line, "\n"), line);
        printf("kafka: %s\n",
               prometheus_sum(&status->page, "gatepost_kafka_reachable") > 0 ? "reachable" : "away");
        printf("a second, over ");
        print_duration(rates->seconds);
        printf("%s: accepted %.1f, refused %.1f, events %.1f, duplicates %.1f, quarantined %.1f\n",
               rates->since_start ? " since the start" : "", rates->accepted, rates->refused, rates->events,
               rates->duplicates, rates->quarantined);
        print_requests(status);
        print_router(status);
        print_secrets(status);
}

static void
put_float(yajl_gen json, const char *name, double value)
{
        char text[64];

        json_text(json, name);
        (void)yajl_gen_number(json, text, (size_t)snprintf(text, sizeof(text), "%.3f", tame(value)));
}

/* A number that is a whole one, or null for a metric that is not there. */
static void
put_sum(yajl_gen json, const struct status *status, const char *name, const char *metric)
{
        if (prometheus_next(&status->page, metric, NULL) == NULL)
                json_null(json, name);
        else
                json_number(json, name, (int64_t)tame(prometheus_sum(&status->page, metric)));
}

/* An object with a member for each value of a label, of the samples whose other label has that value, if there is one. */
static void
put_counts(yajl_gen json, const struct status *status, const char *metric, const char *label,
           const char *other, const char *other_value)
{
        const struct prometheus_sample *sample = NULL;

        (void)yajl_gen_map_open(json);
        while ((sample = prometheus_next(&status->page, metric, sample)) != NULL) {
                if (other == NULL || strcmp(prometheus_label(sample, other), other_value) == 0)
                        json_number(json, prometheus_label(sample, label), (int64_t)tame(sample->value));
        }
        (void)yajl_gen_map_close(json);
}

static void
put_requests(yajl_gen json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL;
        const char *source = NULL;

        json_text(json, "requests");
        (void)yajl_gen_map_open(json);
        while ((sample = prometheus_next(&status->page, "gatepost_requests_total", sample)) != NULL) {
                if (source != NULL && strcmp(prometheus_label(sample, "source"), source) == 0)
                        continue;
                source = prometheus_label(sample, "source");
                json_text(json, source);
                put_counts(json, status, "gatepost_requests_total", "outcome", "source", source);
        }
        (void)yajl_gen_map_close(json);
}

static void
put_roles(yajl_gen json, const struct status *status)
{
        json_text(json, "roles");
        (void)yajl_gen_map_open(json);
        for (const char *line = status->readiness; *line != '\0';) {
                size_t len = strcspn(line, "\n"), name_len = strcspn(line, ":\n"), skipped = name_len;

                if (name_len < len) {
                        skipped += line[name_len + 1] == ' ' ? 2 : 1;
                        (void)yajl_gen_string(json, (const unsigned char *)line, name_len);
                        (void)yajl_gen_string(json, (const unsigned char *)line + skipped, len - skipped);
                }
                line += len;
                line += *line == '\n';
        }
        (void)yajl_gen_map_close(json);
}

static void
put_rates(yajl_gen json, const struct status_rates *rates)
{
        json_text(json, "rates");
        (void)yajl_gen_map_open(json);
        put_float(json, "seconds", rates->seconds);
        json_flag(json, "sinceStart", rates->since_start);
        put_float(json, "accepted", rates->accepted);
        put_float(json, "refused", rates->refused);
        put_float(json, "events", rates->events);
        put_float(json, "duplicates", rates->duplicates);
        put_float(json, "quarantined", rates->quarantined);
        (void)yajl_gen_map_close(json);
}

void
status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line)
{
        yajl_gen json = json_new(!in_one_line);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ready", status->is_ready);
        put_roles(json, status);
        json_flag(json, "kafkaReachable", prometheus_sum(&status->page, "gatepost_kafka_reachable") > 0);
        json_number(json, "uptimeSeconds", (int64_t)tame(status_uptime(status)));
        put_rates(json, rates);
        put_requests(json, status);
        json_text(json, "events");
        put_counts(json, status, "gatepost_events_total", "kind", NULL, NULL);
        put_sum(json, status, "duplicates", "gatepost_duplicates_total");
        json_text(json, "quarantined");
        put_counts(json, status, "gatepost_quarantined_total", "reason", NULL, NULL);
        json_text(json, "transactions");
        put_counts(json, status, "gatepost_transactions_total", "result", NULL, NULL);
        put_sum(json, status, "lagRecords", "gatepost_router_lag_records");
        put_sum(json, status, "rememberedIds", "gatepost_remembered_ids");
        json_text(json, "secretAgeSeconds");
        put_counts(json, status, "gatepost_secret_age_seconds", "source", NULL, NULL);
        (void)yajl_gen_map_close(json);
        json_print(json);
}
