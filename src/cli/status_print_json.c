#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/prometheus.h"
#include "cli/status_print.h"

static void
put_float(yajl_gen json, const char *name, double value)
{
        char text[64];

        json_text(json, name);
        (void)yajl_gen_number(json, text, (size_t)snprintf(text, sizeof(text), "%.3f", status_tame(value)));
}

/* A number that is a whole one, or null for a metric that is not there. */
static void
put_sum(yajl_gen json, const struct status *status, const char *name, const char *metric)
{
        if (prometheus_next(&status->page, metric, NULL) == NULL)
                json_null(json, name);
        else
                json_number(json, name, (int64_t)status_tame(prometheus_sum(&status->page, metric)));
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
                        json_number(json, prometheus_label(sample, label),
                                    (int64_t)status_tame(sample->value));
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

/* Below what half and 99 % of a histogram's values have been since the start; null where there are none. */
static void
put_times(yajl_gen json, const struct status *status, const char *name, const char *metric)
{
        struct prometheus_buckets buckets;

        prometheus_buckets_read(&buckets, &status->page, metric);
        if (!(prometheus_buckets_count(&buckets) > 0)) {
                json_null(json, name);
                return;
        }
        json_text(json, name);
        (void)yajl_gen_map_open(json);
        put_float(json, "p50", prometheus_buckets_quantile(&buckets, 0.5));
        put_float(json, "p99", prometheus_buckets_quantile(&buckets, 0.99));
        (void)yajl_gen_map_close(json);
}

static void
put_brokers(yajl_gen json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL;

        json_text(json, "brokers");
        (void)yajl_gen_array_open(json);
        while ((sample = prometheus_next(&status->page, "gatepost_kafka_broker_up", sample)) != NULL) {
                (void)yajl_gen_map_open(json);
                json_member(json, "broker", prometheus_label(sample, "broker"));
                json_flag(json, "up", sample->value != 0);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
}

static void
put_partitions(yajl_gen json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL, *lag = NULL;

        json_text(json, "partitions");
        (void)yajl_gen_array_open(json);
        while ((sample = prometheus_next(&status->page, "gatepost_router_partition_state", sample)) != NULL) {
                const char *partition = prometheus_label(sample, "partition");

                (void)yajl_gen_map_open(json);
                json_number(json, "partition", strtol(partition, NULL, 10));
                json_member(json, "state", prometheus_label(sample, "state"));
                json_member(json, "cause", prometheus_label(sample, "cause"));
                while ((lag = prometheus_next(&status->page, "gatepost_router_partition_lag_records", lag)) !=
                       NULL) {
                        if (strcmp(prometheus_label(lag, "partition"), partition) == 0)
                                json_number(json, "lagRecords", (int64_t)status_tame(lag->value));
                }
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
}

static void
put_secrets(yajl_gen json, const struct status *status)
{
        const struct prometheus_sample *sample = NULL;

        json_text(json, "secrets");
        (void)yajl_gen_array_open(json);
        while ((sample = prometheus_next(&status->page, "gatepost_secret_age_seconds", sample)) != NULL) {
                (void)yajl_gen_map_open(json);
                json_member(json, "source", prometheus_label(sample, "source"));
                json_member(json, "file", prometheus_label(sample, "file"));
                json_number(json, "ageSeconds", (int64_t)status_tame(sample->value));
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
}

void
status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line)
{
        yajl_gen json = json_new(!in_one_line);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ready", status->is_ready);
        put_roles(json, status);
        json_flag(json, "kafkaReachable", prometheus_sum(&status->page, "gatepost_kafka_reachable") > 0);
        put_brokers(json, status);
        json_number(json, "uptimeSeconds", (int64_t)status_tame(status_uptime(status)));
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
        put_sum(json, status, "oldestRecordAgeSeconds", "gatepost_router_oldest_record_age_seconds");
        put_partitions(json, status);
        put_times(json, status, "ackSeconds", "gatepost_ack_seconds");
        put_times(json, status, "eventAgeSeconds", "gatepost_event_age_seconds");
        put_times(json, status, "commitSeconds", "gatepost_commit_seconds");
        put_sum(json, status, "rememberedIds", "gatepost_remembered_ids");
        put_secrets(json, status);
        put_sum(json, status, "certificateExpirySeconds",
                "gatepost_tls_certificate_expiry_timestamp_seconds");
        (void)yajl_gen_map_close(json);
        json_print(json);
}
