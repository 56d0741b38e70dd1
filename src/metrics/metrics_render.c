#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "metrics/exposition.h"
#include "metrics/metrics_state.h"
#include "metrics/process.h"

static uint64_t
get(const counter *count)
{
        return atomic_load_explicit(count, memory_order_relaxed);
}

static void
render_brokers(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_kafka_broker_up", "gauge",
                        "Whether a broker is connected, each that is known.");
        for (size_t i = 0; i < metrics->brokers.n; i++) {
                fputs("gatepost_kafka_broker_up{broker=", out);
                exposition_value(out, metrics->brokers.items[i].name);
                fprintf(out, "} %d\n", metrics->brokers.items[i].is_up);
        }
        exposition_head(out, "gatepost_kafka_broker_rtt_seconds", "gauge",
                        "From a request to its answer, on average of late, each broker that has answered.");
        for (size_t i = 0; i < metrics->brokers.n; i++) {
                if (metrics->brokers.items[i].rtt_us == 0)
                        continue;
                fputs("gatepost_kafka_broker_rtt_seconds{broker=", out);
                exposition_value(out, metrics->brokers.items[i].name);
                fprintf(out, "} %.6f\n", (double)metrics->brokers.items[i].rtt_us / 1e6);
        }
}

static void
render_process(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_start_time_seconds", "gauge",
                        "When the process started, since the epoch.");
        fprintf(out, "gatepost_start_time_seconds %" PRId64 "\n", metrics->start_s);
        exposition_head(out, "gatepost_config_last_reload_successful", "gauge",
                        "Whether the configuration was taken over when it was last read.");
        fprintf(out, "gatepost_config_last_reload_successful %d\n", metrics->was_renewed);
        exposition_head(out, "gatepost_config_last_reload_success_timestamp_seconds", "gauge",
                        "When a configuration was last taken over, at the start or later, since the epoch.");
        fprintf(out, "gatepost_config_last_reload_success_timestamp_seconds %" PRId64 "\n",
                metrics->renewed_s);
        exposition_head(out, "gatepost_kafka_reachable", "gauge",
                        "Whether Kafka answered when last asked, and the topics were found right.");
        fprintf(out, "gatepost_kafka_reachable %" PRIu64 "\n", get(&metrics->kafka_reachable));
}

static void
render_clients(const struct metrics *metrics, const char *name, const char *type, const char *help,
               size_t offset, FILE *out)
{
        static const struct {
                const char *name;
                unsigned role;
        } clients[CLIENT_N] = {
            [CLIENT_RECEIVER] = {"receiver", CONFIG_RECEIVER},
            [CLIENT_ROUTER] = {"router", CONFIG_ROUTER},
        };

        exposition_head(out, name, type, help);
        for (size_t c = 0; c < CLIENT_N; c++) {
                if (metrics->config->roles & clients[c].role)
                        fprintf(out, "%s{client=\"%s\"} %" PRIu64 "\n", name, clients[c].name,
                                get((const counter *)((const char *)&metrics->clients[c] + offset)));
        }
}

/* librdkafka's own counts. */
static void
render_librdkafka(const struct metrics *metrics, FILE *out)
{
        static const struct {
                const char *name;
                const char *type;
                const char *help;
                size_t offset;
        } rows[] = {
            {"gatepost_kafka_requests_total", "counter",
             "Requests sent to brokers, by the role that sent them.",
             offsetof(struct metrics_clients, requests)},
            {"gatepost_kafka_request_errors_total", "counter",
             "Requests and answers that failed on their way.", offsetof(struct metrics_clients, errors)},
            {"gatepost_kafka_request_timeouts_total", "counter", "Requests that were not answered in time.",
             offsetof(struct metrics_clients, timeouts)},
            {"gatepost_kafka_request_retries_total", "counter", "Requests that were sent once more.",
             offsetof(struct metrics_clients, retries)},
            {"gatepost_kafka_queue_records", "gauge",
             "Records that wait to be sent, or to be taken when fetched.",
             offsetof(struct metrics_clients, queued_records)},
            {"gatepost_kafka_queue_bytes", "gauge", "What these records hold.",
             offsetof(struct metrics_clients, queued_bytes)},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                render_clients(metrics, rows[i].name, rows[i].type, rows[i].help, rows[i].offset, out);
}

static void
render_readiness(const struct metrics *metrics, FILE *out)
{
        if (metrics->health == NULL)
                return;
        exposition_head(out, "gatepost_ready", "gauge", "Whether a role works, as /readyz says.");
        for (size_t i = 0; i < metrics->health->n_parts; i++) {
                const struct health_part *part = &metrics->health->parts[i];
                char reason[HEALTH_REASON_SIZE];

                fprintf(out, "gatepost_ready{role=\"%s\"} %d\n", part->name,
                        part->is_ready(part->arg, reason) != 0);
        }
}

/* A source that has its secret in the configuration has no series. */
static void
render_secrets(const struct metrics *metrics, FILE *out)
{
        int64_t now_s = clock_now_ms() / 1000;

        exposition_head(out, "gatepost_secret_age_seconds", "gauge",
                        "Since a secret_file was written, as it was when it was read.");
        for (size_t s = 0; s < metrics->newest->n_sources; s++) {
                const struct config_source *source = &metrics->newest->sources[s];

                for (size_t i = 0; i < source->n_secret_files; i++) {
                        int64_t age_s = now_s - source->secret_files[i].written_s;

                        fprintf(out, "gatepost_secret_age_seconds{source=\"%s\",file=", source->name);
                        exposition_value(out, source->secret_files[i].path);
                        fprintf(out, "} %" PRId64 "\n", age_s > 0 ? age_s : 0);
                }
        }
}

static void
render_certificate(const struct metrics *metrics, FILE *out)
{
        if (metrics->certificate_end_s == 0)
                return;
        exposition_head(out, "gatepost_tls_certificate_expiry_timestamp_seconds", "gauge",
                        "When the certificate, or the first of its chain, expires, since the epoch.");
        fprintf(out, "gatepost_tls_certificate_expiry_timestamp_seconds %" PRId64 "\n",
                metrics->certificate_end_s);
}

static void
render_requests(const struct metrics_requests *requests, FILE *out)
{
        for (size_t o = 0; o < OUTCOME_N; o++)
                fprintf(out, "gatepost_requests_total{source=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                        requests->source, metrics_outcome_name((enum metrics_outcome)o),
                        get(&requests->counts[o]));
}

static void
render_receiver(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_requests_total", "counter",
                        "Requests answered, by outcome, and by the source that their path was held to be "
                        "of.");
        for (const struct metrics_requests *each = metrics->requests->next; each != NULL; each = each->next)
                render_requests(each, out);
        render_requests(metrics->requests, out); /* to no source */
        exposition_histogram(out, "gatepost_verify_seconds", "How long the check of a signature takes.",
                             &metrics->histograms[HISTOGRAM_VERIFY]);
        exposition_histogram(out, "gatepost_ack_seconds",
                             "From a request that has come completely to its answer, of accepted deliveries.",
                             &metrics->histograms[HISTOGRAM_ACK]);
        exposition_histogram(out, "gatepost_stale_genuine_age_seconds",
                             "Between the signed timestamp and now, of genuine deliveries refused as stale.",
                             &metrics->histograms[HISTOGRAM_STALE_AGE]);
}

static void
render_connections(const struct metrics *metrics, FILE *out)
{
        const struct connection_stats *connections = &metrics->connections;
        uint64_t open = connection_stats_open(connections);

        exposition_head(out, "gatepost_connections_open", "gauge", "Connections of the receiver.");
        fprintf(out, "gatepost_connections_open %" PRIu64 "\n", open);
        exposition_head(out, "gatepost_connections_accepted_total", "counter", "Connections that came.");
        fprintf(out, "gatepost_connections_accepted_total %" PRIuFAST64 "\n",
                atomic_load_explicit(&connections->accepted, memory_order_relaxed));
        exposition_head(out, "gatepost_connections_closed_total", "counter",
                        "Connections that ended, by the reason.");
        for (size_t i = 0; i < HTTP_N_ENDS; i++)
                fprintf(out, "gatepost_connections_closed_total{reason=\"%s\"} %" PRIuFAST64 "\n",
                        http_end_name((enum http_end)i),
                        atomic_load_explicit(&connections->ended[i], memory_order_relaxed));
        if (metrics->budget == NULL)
                return;
        exposition_head(out, "gatepost_in_flight_bytes", "gauge",
                        "Bodies that have begun to come and are not answered.");
        fprintf(out, "gatepost_in_flight_bytes %" PRIu64 "\n", memory_budget_used(metrics->budget));
        exposition_head(out, "gatepost_in_flight_limit_bytes", "gauge", "max_in_flight, which bounds them.");
        fprintf(out, "gatepost_in_flight_limit_bytes %" PRIu64 "\n", memory_budget_size(metrics->budget));
}

static void
render_partitions(const struct metrics *metrics, FILE *out)
{
        pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&metrics->mutex;

        pthread_mutex_lock(mutex);
        exposition_head(out, "gatepost_router_partition_state", "gauge",
                        "1 for the state of each partition that this router has, or that no router has.");
        for (size_t i = 0; i < metrics->n_partitions; i++)
                fprintf(out,
                        "gatepost_router_partition_state{partition=\"%d\",state=\"%s\",cause=\"%s\"} 1\n",
                        (int)metrics->partitions[i].id, metrics->partitions[i].state,
                        metrics->partitions[i].cause);
        exposition_head(out, "gatepost_router_partition_lag_records", "gauge",
                        "Records that wait to be routed, by partition.");
        for (size_t i = 0; i < metrics->n_partitions; i++)
                fprintf(out, "gatepost_router_partition_lag_records{partition=\"%d\"} %" PRIu64 "\n",
                        (int)metrics->partitions[i].id, metrics->partitions[i].lag);
        pthread_mutex_unlock(mutex);
}

static void
render_router(const struct metrics *metrics, FILE *out)
{
        const struct metrics_events *events = atomic_load(&metrics->events);

        exposition_head(out, "gatepost_events_total", "counter",
                        "Events published, by the kind or pattern that chose the topic.");
        for (; events != NULL; events = atomic_load(&events->next)) {
                fputs("gatepost_events_total{kind=", out);
                exposition_value(out, events->kind);
                fprintf(out, "} %" PRIu64 "\n", get(&events->count));
        }
        exposition_head(out, "gatepost_duplicates_total", "counter", "Repeated deliveries dropped.");
        fprintf(out, "gatepost_duplicates_total %" PRIu64 "\n", get(&metrics->duplicates));
        exposition_head(out, "gatepost_quarantined_total", "counter",
                        "Deliveries put into quarantine, by reason.");
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                fprintf(out, "gatepost_quarantined_total{reason=\"%s\"} %" PRIu64 "\n",
                        judge_reason_name((enum quarantine_reason)r), get(&metrics->quarantined[r]));
        exposition_head(out, "gatepost_transactions_total", "counter", "Transactions ended, by result.");
        fprintf(out, "gatepost_transactions_total{result=\"committed\"} %" PRIu64 "\n",
                get(&metrics->transactions[1]));
        fprintf(out, "gatepost_transactions_total{result=\"aborted\"} %" PRIu64 "\n",
                get(&metrics->transactions[0]));
        exposition_histogram(out, "gatepost_batch_records", "Records of a committed transaction.",
                             &metrics->histograms[HISTOGRAM_BATCH_RECORDS]);
        exposition_histogram(out, "gatepost_commit_seconds", "How long the commit of a transaction takes.",
                             &metrics->histograms[HISTOGRAM_COMMIT]);
        exposition_histogram(out, "gatepost_event_age_seconds",
                             "From the signed timestamp of an event to the commit that publishes it.",
                             &metrics->histograms[HISTOGRAM_EVENT_AGE]);
        exposition_head(out, "gatepost_router_lag_records", "gauge",
                        "Records of deliveries that wait to be routed here.");
        fprintf(out, "gatepost_router_lag_records %" PRIu64 "\n", get(&metrics->lag));
        exposition_head(out, "gatepost_router_oldest_record_age_seconds", "gauge",
                        "For how long at most the oldest record that waits to be routed here has waited; 0 "
                        "when none does.");
        fprintf(out, "gatepost_router_oldest_record_age_seconds %.3f\n",
                (double)get(&metrics->oldest_ms) / 1000);
        render_partitions(metrics, out);
        exposition_head(out, "gatepost_deleted_before_routing_total", "counter",
                        "Records of deliveries that retention deleted before they were routed.");
        fprintf(out, "gatepost_deleted_before_routing_total %" PRIu64 "\n", get(&metrics->deleted));
        exposition_head(out, "gatepost_log_truncations_total", "counter",
                        "Times that Kafka lost records that were routed: a log was cut off.");
        fprintf(out, "gatepost_log_truncations_total %" PRIu64 "\n", get(&metrics->truncations));
        exposition_head(out, "gatepost_remembered_ids", "gauge",
                        "Delivery-ids in the tables that tell repeats.");
        fprintf(out, "gatepost_remembered_ids %" PRIu64 "\n", get(&metrics->remembered_ids));
}

char *
metrics_render(const struct metrics *metrics, size_t *len)
{
        char *text = NULL;
        FILE *out = open_memstream(&text, len);

        if (out == NULL)
                return NULL;
        process_render(metrics->start_s, out);
        render_process(metrics, out);
        render_readiness(metrics, out);
        render_brokers(metrics, out);
        render_librdkafka(metrics, out);
        if (metrics->config->roles & CONFIG_RECEIVER) {
                render_receiver(metrics, out);
                render_connections(metrics, out);
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
