#include "cli/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/prometheus.h"

/* Print the outcomes of a source's requests that have a count. */
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

/* Print the outcomes of each source; its samples are adjacent. */
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

/* Print a title and a line for each value of the label that has a count. */
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

/* Print the partitions that are not routed. */
static void
print_partitions(const struct status *status)
{
        const struct prometheus_sample *sample = NULL;

        while ((sample = prometheus_next(&status->page, "gatepost_router_partition_state", sample)) != NULL) {
                const char *cause = prometheus_label(sample, "cause");
                const struct prometheus_sample *lag = NULL;

                if (strcmp(prometheus_label(sample, "state"), "routing") == 0)
                        continue;
                printf("  partition %s %s%s%s", prometheus_label(sample, "partition"),
                       prometheus_label(sample, "state"), *cause == '\0' ? "" : ", ", cause);
                while ((lag = prometheus_next(&status->page, "gatepost_router_partition_lag_records", lag)) !=
                       NULL) {
                        if (strcmp(prometheus_label(lag, "partition"),
                                   prometheus_label(sample, "partition")) == 0)
                                printf(", lag %.0f", status_tame(lag->value));
                }
                putchar('\n');
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
        printf("\nlag: %.0f records", prometheus_sum(&status->page, "gatepost_router_lag_records"));
        if (prometheus_sum(&status->page, "gatepost_router_oldest_record_age_seconds") > 0) {
                printf(", the oldest for ");
                number_print_time(stdout,
                                  status_tame(prometheus_sum(&status->page,
                                                             "gatepost_router_oldest_record_age_seconds")));
        }
        putchar('\n');
        print_partitions(status);
        printf("remembered ids: %.0f\n", prometheus_sum(&status->page, "gatepost_remembered_ids"));
}

/* Print the median and 99th percentile of a histogram since the start, if it has values. */
static void
print_times(const struct status *status, const char *title, const char *name)
{
        struct prometheus_buckets buckets;

        prometheus_buckets_read(&buckets, &status->page, name);
        if (!(prometheus_buckets_count(&buckets) > 0))
                return;
        printf("%s: half within ", title);
        number_print_time(stdout, status_tame(prometheus_buckets_quantile(&buckets, 0.5)));
        printf(", 99 %% within ");
        number_print_time(stdout, status_tame(prometheus_buckets_quantile(&buckets, 0.99)));
        putchar('\n');
}

static void
print_secrets(const struct status *status)
{
        const struct prometheus_sample *sample = NULL;
        int n = 0;

        while ((sample = prometheus_next(&status->page, "gatepost_secret_age_seconds", sample)) != NULL) {
                printf("%s  %-24s ", n++ == 0 ? "secrets, by their age\n" : "",
                       prometheus_label(sample, "source"));
                number_print_span(stdout, sample->value);
                printf("  %s\n", prometheus_label(sample, "file"));
        }
}

static void
print_certificate(const struct status *status)
{
        const struct prometheus_sample *end =
            prometheus_next(&status->page, "gatepost_tls_certificate_expiry_timestamp_seconds", NULL);
        double left = end == NULL ? 0 : status_tame(end->value) - (double)clock_now_ms() / 1000;

        if (end == NULL)
                return;
        printf("certificate: %s", left < 0 ? "expired" : "expires in ");
        if (left >= 0)
                number_print_span(stdout, left);
        putchar('\n');
}

/* Print the number of brokers and which are down. */
static void
print_brokers(const struct status *status)
{
        const struct prometheus_sample *sample = NULL;
        int n = 0;

        while ((sample = prometheus_next(&status->page, "gatepost_kafka_broker_up", sample)) != NULL)
                n++;
        if (n == 0)
                return;
        printf("brokers: %d known, %.0f reachable\n", n,
               prometheus_sum(&status->page, "gatepost_kafka_broker_up"));
        while ((sample = prometheus_next(&status->page, "gatepost_kafka_broker_up", sample)) != NULL) {
                if (sample->value == 0)
                        printf("  %-24s down\n", prometheus_label(sample, "broker"));
        }
}

void
status_print(const struct status *status, const struct status_rates *rates)
{
        printf("%s, up ", status->is_ready ? "ready" : "not ready");
        number_print_span(stdout, status_uptime(status));
        putchar('\n');
        for (const char *line = status->readiness; *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n')
                printf("  %.*s\n", (int)strcspn(line, "\n"), line);
        printf("kafka: %s\n",
               prometheus_sum(&status->page, "gatepost_kafka_reachable") > 0 ? "reachable" : "away");
        print_brokers(status);
        printf("a second, over ");
        number_print_span(stdout, rates->seconds);
        printf("%s: accepted %.1f, refused %.1f, events %.1f, duplicates %.1f, quarantined %.1f\n",
               rates->since_start ? " since the start" : "", rates->accepted, rates->refused, rates->events,
               rates->duplicates, rates->quarantined);
        print_requests(status);
        print_times(status, "from request to answer", "gatepost_ack_seconds");
        print_router(status);
        print_times(status, "from signing to event", "gatepost_event_age_seconds");
        print_times(status, "commits", "gatepost_commit_seconds");
        print_secrets(status);
        print_certificate(status);
}

static void
put_float(struct json_writer *json, const char *name, double value)
{
        char text[64];

        (void)snprintf(text, sizeof(text), "%.3f", status_tame(value));
        json_literal(json, name, text);
}

/* Write a whole number, or null for a missing metric. */
static void
put_sum(struct json_writer *json, const struct status *status, const char *name, const char *metric)
{
        if (prometheus_next(&status->page, metric, NULL) == NULL)
                json_null(json, name);
        else
                json_number(json, name, (int64_t)status_tame(prometheus_sum(&status->page, metric)));
}

/*
 * Write an object with a member for each value of a label; only of samples whose label `other` has
 * other_value, unless it is NULL.
 */
static void
put_counts(struct json_writer *json, const char *name, const struct status *status, const char *metric,
           const char *label, const char *other, const char *other_value)
{
        const struct prometheus_sample *sample = NULL;

        json_open_object(json, name);
        while ((sample = prometheus_next(&status->page, metric, sample)) != NULL) {
                if (other == NULL || strcmp(prometheus_label(sample, other), other_value) == 0)
                        json_number(json, prometheus_label(sample, label),
                                    (int64_t)status_tame(sample->value));
        }
        json_close_object(json);
}

static void
put_requests(struct json_writer *json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL;
        const char *source = NULL;

        json_open_object(json, "requests");
        while ((sample = prometheus_next(&status->page, "gatepost_requests_total", sample)) != NULL) {
                if (source != NULL && strcmp(prometheus_label(sample, "source"), source) == 0)
                        continue;
                source = prometheus_label(sample, "source");
                put_counts(json, source, status, "gatepost_requests_total", "outcome", "source", source);
        }
        json_close_object(json);
}

static void
put_roles(struct json_writer *json, const struct status *status)
{
        json_open_object(json, "roles");
        for (const char *line = status->readiness; *line != '\0';) {
                size_t len = strcspn(line, "\n"), name_len = strcspn(line, ":\n"), skipped = name_len;

                if (name_len < len) {
                        skipped += line[name_len + 1] == ' ' ? 2 : 1;
                        char *name = mem_strndup(line, name_len);

                        json_string(json, name, line + skipped, len - skipped);
                        free(name);
                }
                line += len;
                line += *line == '\n';
        }
        json_close_object(json);
}

static void
put_rates(struct json_writer *json, const struct status_rates *rates)
{
        json_open_object(json, "rates");
        put_float(json, "seconds", rates->seconds);
        json_flag(json, "sinceStart", rates->since_start);
        put_float(json, "accepted", rates->accepted);
        put_float(json, "refused", rates->refused);
        put_float(json, "events", rates->events);
        put_float(json, "duplicates", rates->duplicates);
        put_float(json, "quarantined", rates->quarantined);
        json_close_object(json);
}

/* Write the median and 99th percentile of a histogram since the start; null if it has no values. */
static void
put_times(struct json_writer *json, const struct status *status, const char *name, const char *metric)
{
        struct prometheus_buckets buckets;

        prometheus_buckets_read(&buckets, &status->page, metric);
        if (!(prometheus_buckets_count(&buckets) > 0)) {
                json_null(json, name);
                return;
        }
        json_open_object(json, name);
        put_float(json, "p50", prometheus_buckets_quantile(&buckets, 0.5));
        put_float(json, "p99", prometheus_buckets_quantile(&buckets, 0.99));
        json_close_object(json);
}

static void
put_brokers(struct json_writer *json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL;

        json_open_array(json, "brokers");
        while ((sample = prometheus_next(&status->page, "gatepost_kafka_broker_up", sample)) != NULL) {
                json_open_object(json, NULL);
                json_member(json, "broker", prometheus_label(sample, "broker"));
                json_flag(json, "up", sample->value != 0);
                json_close_object(json);
        }
        json_close_array(json);
}

static void
put_partitions(struct json_writer *json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL, *lag = NULL;

        json_open_array(json, "partitions");
        while ((sample = prometheus_next(&status->page, "gatepost_router_partition_state", sample)) != NULL) {
                const char *partition = prometheus_label(sample, "partition");

                json_open_object(json, NULL);
                json_number(json, "partition", strtol(partition, NULL, 10));
                json_member(json, "state", prometheus_label(sample, "state"));
                json_member(json, "cause", prometheus_label(sample, "cause"));
                while ((lag = prometheus_next(&status->page, "gatepost_router_partition_lag_records", lag)) !=
                       NULL) {
                        if (strcmp(prometheus_label(lag, "partition"), partition) == 0)
                                json_number(json, "lagRecords", (int64_t)status_tame(lag->value));
                }
                json_close_object(json);
        }
        json_close_array(json);
}

static void
put_secrets(struct json_writer *json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL;

        json_open_array(json, "secrets");
        while ((sample = prometheus_next(&status->page, "gatepost_secret_age_seconds", sample)) != NULL) {
                json_open_object(json, NULL);
                json_member(json, "source", prometheus_label(sample, "source"));
                json_member(json, "file", prometheus_label(sample, "file"));
                json_number(json, "ageSeconds", (int64_t)status_tame(sample->value));
                json_close_object(json);
        }
        json_close_array(json);
}

void
status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line)
{
        struct json_writer *json = json_new(!in_one_line);

        json_open_object(json, NULL);
        json_flag(json, "ready", status->is_ready);
        put_roles(json, status);
        json_flag(json, "kafkaReachable", prometheus_sum(&status->page, "gatepost_kafka_reachable") > 0);
        put_brokers(json, status);
        json_number(json, "uptimeSeconds", (int64_t)status_tame(status_uptime(status)));
        put_rates(json, rates);
        put_requests(json, status);
        put_counts(json, "events", status, "gatepost_events_total", "kind", NULL, NULL);
        put_sum(json, status, "duplicates", "gatepost_duplicates_total");
        put_counts(json, "quarantined", status, "gatepost_quarantined_total", "reason", NULL, NULL);
        put_counts(json, "transactions", status, "gatepost_transactions_total", "result", NULL, NULL);
        put_sum(json, status, "lagRecords", "gatepost_router_lag_records");
        put_sum(json, status, "oldestRecordAgeSeconds", "gatepost_router_oldest_record_age_seconds");
        put_partitions(json, status);
        put_times(json, status, "ackSeconds", "gatepost_ack_seconds");
        put_times(json, status, "eventAgeSeconds", "gatepost_event_age_seconds");
        put_times(json, status, "commitSeconds", "gatepost_commit_seconds");
        put_sum(json, status, "rememberedIds", "gatepost_remembered_ids");
        put_secrets(json, status);
        put_sum(json, status, "certificateExpirySeconds",
                "gatepost_tls_certificate_expiry_timestamp_seconds");
        json_close_object(json);
        json_print(json);
}
