#include "cli/status_print.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/prometheus_buckets.h"

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

/* The partitions that are not routed. */
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
                duration_print_precise(
                    stdout,
                    status_tame(prometheus_sum(&status->page, "gatepost_router_oldest_record_age_seconds")));
        }
        putchar('\n');
        print_partitions(status);
        printf("remembered ids: %.0f\n", prometheus_sum(&status->page, "gatepost_remembered_ids"));
}

/* Below what half and 99 % of a histogram's values have been since the start. Nothing where there are none. */
static void
print_times(const struct status *status, const char *title, const char *name)
{
        struct prometheus_buckets buckets;

        prometheus_buckets_read(&buckets, &status->page, name);
        if (!(prometheus_buckets_count(&buckets) > 0))
                return;
        printf("%s: half within ", title);
        duration_print_precise(stdout, status_tame(prometheus_buckets_quantile(&buckets, 0.5)));
        printf(", 99 %% within ");
        duration_print_precise(stdout, status_tame(prometheus_buckets_quantile(&buckets, 0.99)));
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
                duration_print(stdout, sample->value);
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
                duration_print(stdout, left);
        putchar('\n');
}

/* How many there are, and those that are down. */
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
        duration_print(stdout, status_uptime(status));
        putchar('\n');
        for (const char *line = status->readiness; *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n')
                printf("  %.*s\n", (int)strcspn(line, "\n"), line);
        printf("kafka: %s\n",
               prometheus_sum(&status->page, "gatepost_kafka_reachable") > 0 ? "reachable" : "away");
        print_brokers(status);
        printf("a second, over ");
        duration_print(stdout, rates->seconds);
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
