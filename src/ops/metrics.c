#include "ops/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

typedef _Atomic uint64_t counter;

struct metrics_requests {
        struct metrics_requests *next;
        char *source;
        counter counts[OUTCOME_N];
};

struct metrics {
        const struct config *config;
        const struct config *newest;       /* held; for sources */
        int64_t certificate_end_s;         /* 0: there is none */
        struct metrics_requests *requests; /* a list; the first is for no source */
        counter *events;                   /* one for each rule of the topic table */
        counter duplicates;
        counter quarantined[QUARANTINE_N_REASONS];
        counter transactions[2]; /* aborted, committed */
        counter remembered_ids;
        counter lag;
        counter kafka_reachable;
        struct brokers brokers;
        int64_t start_s;
};

static const char *const outcome_names[OUTCOME_N] = {
    [OUTCOME_ACCEPTED] = "accepted",   [OUTCOME_BAD_REQUEST] = "bad_request",
    [OUTCOME_NOT_FOUND] = "not_found", [OUTCOME_METHOD_NOT_ALLOWED] = "method_not_allowed",
    [OUTCOME_TOO_LARGE] = "too_large", [OUTCOME_MALFORMED] = "malformed",
    [OUTCOME_FORBIDDEN] = "forbidden", [OUTCOME_STALE] = "stale",
    [OUTCOME_FORGED] = "forged",       [OUTCOME_UNAVAILABLE] = "unavailable",
    [OUTCOME_ERROR] = "error",         [OUTCOME_THROTTLED] = "throttled",
};

const char *
metrics_outcome_name(enum metrics_outcome outcome)
{
        return outcome_names[outcome];
}

struct metrics *
metrics_new(const struct config *config)
{
        struct metrics *metrics = mem_alloc(sizeof(*metrics));

        metrics->config = config;
        metrics->start_s = clock_now_ms() / 1000;
        metrics->events = mem_alloc((topic_table_size(config->topics) + 1) * sizeof(*metrics->events));
        (void)metrics_requests(metrics, "");
        metrics_renew(metrics, config);
        return metrics;
}

void
metrics_renew(struct metrics *metrics, const struct config *config)
{
        config_free(metrics->newest);
        metrics->newest = config_hold(config);
        if (metrics->config->certificate != NULL && config->certificate != NULL)
                metrics->certificate_end_s = config->certificate->not_after_s;
        for (size_t i = 0; i < config->n_sources; i++)
                (void)metrics_requests(metrics, config->sources[i].name);
}

void
metrics_free(struct metrics *metrics)
{
        struct metrics_requests *requests;

        if (metrics == NULL)
                return;
        while ((requests = metrics->requests) != NULL) {
                metrics->requests = requests->next;
                free(requests->source);
                free(requests);
        }
        config_free(metrics->newest);
        free(metrics->events);
        free(metrics);
}

static void
add(counter *count, uint64_t n)
{
        (void)atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

struct metrics_requests *
metrics_requests(struct metrics *metrics, const char *source)
{
        struct metrics_requests **at = &metrics->requests;

        while (*at != NULL && strcmp((*at)->source, source) != 0)
                at = &(*at)->next;
        if (*at == NULL) {
                *at = mem_alloc(sizeof(**at));
                (*at)->source = mem_strdup(source);
        }
        return *at;
}

void
metrics_count_request(struct metrics_requests *requests, enum metrics_outcome outcome)
{
        add(&requests->counts[outcome], 1);
}

void
metrics_count_events(struct metrics *metrics, const struct topic_rule *rule, uint64_t n)
{
        add(&metrics->events[rule->index], n);
}

void
metrics_count_duplicates(struct metrics *metrics, uint64_t n)
{
        add(&metrics->duplicates, n);
}

void
metrics_count_quarantined(struct metrics *metrics, enum quarantine_reason reason, uint64_t n)
{
        add(&metrics->quarantined[reason], n);
}

void
metrics_count_transaction(struct metrics *metrics, int committed)
{
        add(&metrics->transactions[committed != 0], 1);
}

void
metrics_set_router(struct metrics *metrics, uint64_t remembered_ids, uint64_t lag)
{
        atomic_store_explicit(&metrics->remembered_ids, remembered_ids, memory_order_relaxed);
        atomic_store_explicit(&metrics->lag, lag, memory_order_relaxed);
}

void
metrics_set_kafka(struct metrics *metrics, int is_reachable)
{
        atomic_store_explicit(&metrics->kafka_reachable, is_reachable != 0, memory_order_relaxed);
}

void
metrics_set_brokers(struct metrics *metrics, const struct brokers *brokers)
{
        metrics->brokers = *brokers;
}

static void
head(FILE *out, const char *name, const char *type, const char *help)
{
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static uint64_t
get(const counter *count)
{
        return atomic_load_explicit(count, memory_order_relaxed);
}

/* A label's value, in quotes. */
static void
put_value(FILE *out, const char *value)
{
        putc('"', out);
        for (const char *c = value; *c != '\0'; c++) {
                if (*c == '\n')
                        fputs("\\n", out);
                else
                        fprintf(out, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
        }
        putc('"', out);
}

static void
render_brokers(const struct metrics *metrics, FILE *out)
{
        head(out, "gatepost_kafka_broker_up", "gauge", "Whether a broker is connected, each that is known.");
        for (size_t i = 0; i < metrics->brokers.n; i++) {
                fputs("gatepost_kafka_broker_up{broker=", out);
                put_value(out, metrics->brokers.items[i].name);
                fprintf(out, "} %d\n", metrics->brokers.items[i].is_up);
        }
}

static void
render_process(const struct metrics *metrics, FILE *out)
{
        head(out, "gatepost_start_time_seconds", "gauge", "When the process started, since the epoch.");
        fprintf(out, "gatepost_start_time_seconds %" PRId64 "\n", metrics->start_s);
        head(out, "gatepost_kafka_reachable", "gauge",
             "Whether Kafka answered when last asked, and the topics were found right.");
        fprintf(out, "gatepost_kafka_reachable %" PRIu64 "\n", get(&metrics->kafka_reachable));
}

/* A source that has its secret in the configuration has no series. */
static void
render_secrets(const struct metrics *metrics, FILE *out)
{
        int64_t now_s = clock_now_ms() / 1000;

        head(out, "gatepost_secret_age_seconds", "gauge",
             "Since a secret_file was written, as it was when it was read.");
        for (size_t s = 0; s < metrics->newest->n_sources; s++) {
                const struct config_source *source = &metrics->newest->sources[s];

                for (size_t i = 0; i < source->n_secret_files; i++) {
                        int64_t age_s = now_s - source->secret_files[i].written_s;

                        fprintf(out, "gatepost_secret_age_seconds{source=\"%s\",file=", source->name);
                        put_value(out, source->secret_files[i].path);
                        fprintf(out, "} %" PRId64 "\n", age_s > 0 ? age_s : 0);
                }
        }
}

static void
render_certificate(const struct metrics *metrics, FILE *out)
{
        if (metrics->certificate_end_s == 0)
                return;
        head(out, "gatepost_tls_certificate_expiry_timestamp_seconds", "gauge",
             "When the certificate, or the first of its chain, expires, since the epoch.");
        fprintf(out, "gatepost_tls_certificate_expiry_timestamp_seconds %" PRId64 "\n",
                metrics->certificate_end_s);
}

static void
render_requests(const struct metrics_requests *requests, FILE *out)
{
        for (size_t o = 0; o < OUTCOME_N; o++)
                fprintf(out, "gatepost_requests_total{source=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                        requests->source, outcome_names[o], get(&requests->counts[o]));
}

static void
render_receiver(const struct metrics *metrics, FILE *out)
{
        head(out, "gatepost_requests_total", "counter", "Requests answered, by source and outcome.");
        for (const struct metrics_requests *each = metrics->requests->next; each != NULL; each = each->next)
                render_requests(each, out);
        render_requests(metrics->requests, out); /* to no source */
}

static void
render_router(const struct metrics *metrics, FILE *out)
{
        const struct topic_table *topics = metrics->config->topics;

        head(out, "gatepost_events_total", "counter",
             "Events published, by the kind or pattern that chose the topic.");
        for (size_t i = 0; i < topic_table_size(topics); i++)
                fprintf(out, "gatepost_events_total{kind=\"%s\"} %" PRIu64 "\n",
                        topic_table_rule(topics, i)->pattern, get(&metrics->events[i]));
        head(out, "gatepost_duplicates_total", "counter", "Repeated deliveries dropped.");
        fprintf(out, "gatepost_duplicates_total %" PRIu64 "\n", get(&metrics->duplicates));
        head(out, "gatepost_quarantined_total", "counter", "Deliveries put into quarantine, by reason.");
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                fprintf(out, "gatepost_quarantined_total{reason=\"%s\"} %" PRIu64 "\n",
                        judge_reason_name((enum quarantine_reason)r), get(&metrics->quarantined[r]));
        head(out, "gatepost_transactions_total", "counter", "Transactions ended, by result.");
        fprintf(out, "gatepost_transactions_total{result=\"committed\"} %" PRIu64 "\n",
                get(&metrics->transactions[1]));
        fprintf(out, "gatepost_transactions_total{result=\"aborted\"} %" PRIu64 "\n",
                get(&metrics->transactions[0]));
        head(out, "gatepost_router_lag_records", "gauge",
             "Records of deliveries that wait to be routed here.");
        fprintf(out, "gatepost_router_lag_records %" PRIu64 "\n", get(&metrics->lag));
        head(out, "gatepost_remembered_ids", "gauge", "Delivery-ids in the tables that tell repeats.");
        fprintf(out, "gatepost_remembered_ids %" PRIu64 "\n", get(&metrics->remembered_ids));
}

char *
metrics_render(const struct metrics *metrics, size_t *len)
{
        char *text = NULL;
        FILE *out = open_memstream(&text, len);

        if (out == NULL)
                return NULL;
        render_process(metrics, out);
        render_brokers(metrics, out);
        if (metrics->config->roles & CONFIG_RECEIVER) {
                render_receiver(metrics, out);
                render_secrets(metrics, out);
                render_certificate(metrics, out);
        }
        if (metrics->config->roles & CONFIG_ROUTER)
                render_router(metrics, out);
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
