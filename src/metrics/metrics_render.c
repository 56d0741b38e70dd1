#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/event.h>
#include <librdkafka/rdkafka.h>
#include <openssl/crypto.h>

#include "base/clock.h"
#include "metrics/exposition.h"
#include "metrics/metrics_state.h"

static void
render_memory(FILE *out)
{
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t total, resident;
        FILE *in = fopen("/proc/self/statm", "re");
        int n;

        if (in == NULL)
                return;
        n = fscanf(in, "%" SCNu64 " %" SCNu64, &total, &resident);
        (void)fclose(in);
        if (n != 2)
                return;
        exposition_head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
        fprintf(out, "process_resident_memory_bytes %" PRIu64 "\n", resident * page);
        exposition_head(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.");
        fprintf(out, "process_virtual_memory_bytes %" PRIu64 "\n", total * page);
}

long
metrics_open_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        const struct dirent *entry;
        long n = -1;

        if (dir == NULL)
                return -1;
        while ((entry = readdir(dir)) != NULL)
                n += entry->d_name[0] != '.';
        (void)closedir(dir);
        return n;
}

static void
render_descriptors(FILE *out)
{
        struct rlimit limit;
        long n = metrics_open_descriptors();

        if (n >= 0) {
                exposition_head(out, "process_open_fds", "gauge", "Open file descriptors.");
                fprintf(out, "process_open_fds %ld\n", n);
        }
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                exposition_head(out, "process_max_fds", "gauge", "Limit of open file descriptors.");
                fprintf(out, "process_max_fds %" PRIu64 "\n", (uint64_t)limit.rlim_cur);
        }
}

static double
seconds(struct timeval time)
{
        return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void
render_times(int64_t start_s, FILE *out)
{
        struct rusage usage;

        if (getrusage(RUSAGE_SELF, &usage) == 0) {
                exposition_head(out, "process_cpu_seconds_total", "counter", "User and system CPU time.");
                fprintf(out, "process_cpu_seconds_total %.6f\n",
                        seconds(usage.ru_utime) + seconds(usage.ru_stime));
        }
        exposition_head(out, "process_start_time_seconds", "gauge",
                        "When the process started, since the epoch.");
        fprintf(out, "process_start_time_seconds %" PRId64 "\n", start_s);
}

struct metrics_version
metrics_version(size_t i)
{
        const struct metrics_version versions[METRICS_N_VERSIONS] = {
            {"version", PACKAGE_VERSION},
            {"librdkafka", rd_kafka_version_str()},
            {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
            {"libevent", event_get_version()},
        };

        return versions[i];
}

const char *
metrics_client_name(const struct metrics *metrics, enum metrics_client client)
{
        static const struct {
                const char *name;
                unsigned role;
        } clients[CLIENT_N] = {
            [CLIENT_RECEIVER] = {"receiver", CONFIG_RECEIVER},
            [CLIENT_ROUTER] = {"router", CONFIG_ROUTER},
        };

        return metrics->config->roles & clients[client].role ? clients[client].name : NULL;
}

static void
render_build(FILE *out)
{
        exposition_head(out, "gatepost_build_info", "gauge", "1, labelled with the versions in use.");
        fputs("gatepost_build_info", out);
        for (size_t i = 0; i < METRICS_N_VERSIONS; i++) {
                const struct metrics_version version = metrics_version(i);

                fprintf(out, "%c%s=\"%s\"", i == 0 ? '{' : ',', version.name, version.text);
        }
        fputs("} 1\n", out);
}

static void
render_brokers(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_kafka_broker_up", "gauge",
                        "1 for each broker that is connected, 0 for one that is not.");
        for (size_t i = 0; i < metrics->brokers.n; i++) {
                fputs("gatepost_kafka_broker_up{broker=", out);
                exposition_value(out, metrics->brokers.items[i].name);
                fprintf(out, "} %d\n", metrics->brokers.items[i].is_up);
        }
        exposition_head(out, "gatepost_kafka_broker_rtt_seconds", "gauge",
                        "Round trip of the last request for metadata to each connected broker.");
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
        exposition_head(out, "gatepost_config_last_reload_successful", "gauge",
                        "1 when the last reload succeeded, 0 when it failed.");
        fprintf(out, "gatepost_config_last_reload_successful %d\n", metrics->refused_reload.time_s == 0);
        exposition_head(out, "gatepost_config_last_reload_success_timestamp_seconds", "gauge",
                        "When a configuration was last applied, at startup or by a reload, since the epoch.");
        fprintf(out, "gatepost_config_last_reload_success_timestamp_seconds %" PRId64 "\n",
                metrics->applied_s);
        exposition_head(out, "gatepost_kafka_reachable", "gauge",
                        "1 when Kafka answers and the topics are as required.");
        fprintf(out, "gatepost_kafka_reachable %" PRIu64 "\n", metrics_get(&metrics->kafka_reachable));
        exposition_head(out, "gatepost_topics_misconfigured", "gauge",
                        "Topics that do not have the required settings.");
        fprintf(out, "gatepost_topics_misconfigured %" PRIu64 "\n", metrics_get(&metrics->misconfigured));
}

static void
render_clients(const struct metrics *metrics, const char *name, const char *type, const char *help,
               size_t offset, FILE *out)
{
        exposition_head(out, name, type, help);
        for (size_t c = 0; c < CLIENT_N; c++) {
                const char *client = metrics_client_name(metrics, (enum metrics_client)c);

                if (client != NULL)
                        fprintf(out, "%s{client=\"%s\"} %" PRIu64 "\n", name, client,
                                metrics_get((const counter *)((const char *)&metrics->clients[c] + offset)));
        }
}

/* Write the counts of librdkafka. */
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
             "Requests and responses lost to transport errors.", offsetof(struct metrics_clients, errors)},
            {"gatepost_kafka_request_timeouts_total", "counter", "Requests that timed out.",
             offsetof(struct metrics_clients, timeouts)},
            {"gatepost_kafka_request_retries_total", "counter", "Requests that were retried.",
             offsetof(struct metrics_clients, retries)},
            {"gatepost_kafka_queue_records", "gauge",
             "Records queued to be sent, or fetched and not yet processed.",
             offsetof(struct metrics_clients, queued_records)},
            {"gatepost_kafka_queue_bytes", "gauge", "Bytes of these records.",
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
        exposition_head(out, "gatepost_ready", "gauge", "1 when a role is ready, as in /readyz.");
        for (size_t i = 0; i < metrics->health->n_parts; i++) {
                const struct health_part *part = &metrics->health->parts[i];
                char reason[HEALTH_REASON_SIZE];

                fprintf(out, "gatepost_ready{role=\"%s\"} %d\n", part->name,
                        part->is_ready(part->arg, reason) != 0);
        }
}

/* A source whose secret is in the configuration file has no series. */
static void
render_secrets(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_secret_timestamp_seconds", "gauge",
                        "When a secret_file was last modified, since the epoch.");
        for (size_t s = 0; s < metrics->newest->n_sources; s++) {
                const struct config_source *source = &metrics->newest->sources[s];

                for (size_t i = 0; i < source->n_secret_files; i++) {
                        fprintf(out, "gatepost_secret_timestamp_seconds{source=\"%s\",file=", source->name);
                        exposition_value(out, source->secret_files[i].path);
                        fprintf(out, "} %" PRId64 "\n", source->secret_files[i].written_s);
                }
        }
}

static void
render_certificate(const struct metrics *metrics, FILE *out)
{
        if (metrics->certificate_end_s == 0)
                return;
        exposition_head(out, "gatepost_tls_certificate_expiry_timestamp_seconds", "gauge",
                        "When the first certificate of the chain expires, since the epoch.");
        fprintf(out, "gatepost_tls_certificate_expiry_timestamp_seconds %" PRId64 "\n",
                metrics->certificate_end_s);
}

static void
render_requests(const struct metrics *metrics, FILE *out)
{
        exposition_head(
            out, "gatepost_requests_total", "counter",
            "Requests, by outcome and by source; the source is empty when the path belongs to none.");
        for (const struct metrics_source *each = atomic_load(&metrics->sources); each != NULL;
             each = atomic_load(&each->next)) {
                for (size_t o = 0; o < OUTCOME_N; o++)
                        fprintf(out, "gatepost_requests_total{source=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                                each->name, metrics_outcome_name((enum metrics_outcome)o),
                                metrics_get(&each->requests[o]));
        }
}

static void
render_receiver(const struct metrics *metrics, FILE *out)
{
        render_requests(metrics, out);
        exposition_histogram(out, "gatepost_verify_seconds", "Time to verify a signature.",
                             &metrics->histograms[HISTOGRAM_VERIFY]);
        exposition_histogram(out, "gatepost_ack_seconds",
                             "Time from a complete request to its answer, of accepted deliveries.",
                             &metrics->histograms[HISTOGRAM_ACK]);
        exposition_histogram(out, "gatepost_stale_genuine_age_seconds",
                             "Age of genuine deliveries that were refused as stale.",
                             &metrics->histograms[HISTOGRAM_STALE_AGE]);
}

static void
render_connections(const struct metrics *metrics, FILE *out)
{
        const struct connection_stats *connections = &metrics->connections;
        uint64_t open = connection_stats_open(connections);

        exposition_head(out, "gatepost_connections_open", "gauge", "Open connections of the receiver.");
        fprintf(out, "gatepost_connections_open %" PRIu64 "\n", open);
        exposition_head(out, "gatepost_connections_accepted_total", "counter", "Accepted connections.");
        fprintf(out, "gatepost_connections_accepted_total %" PRIuFAST64 "\n",
                atomic_load_explicit(&connections->accepted, memory_order_relaxed));
        exposition_head(out, "gatepost_connections_closed_total", "counter",
                        "Closed connections, by reason.");
        for (size_t i = 0; i < HTTP_N_ENDS; i++)
                fprintf(out, "gatepost_connections_closed_total{reason=\"%s\"} %" PRIuFAST64 "\n",
                        http_end_name((enum http_end)i),
                        atomic_load_explicit(&connections->ended[i], memory_order_relaxed));
        if (metrics->budget == NULL)
                return;
        exposition_head(out, "gatepost_in_flight_bytes", "gauge",
                        "Bytes of the bodies of unanswered requests.");
        fprintf(out, "gatepost_in_flight_bytes %" PRIu64 "\n", memory_budget_used(metrics->budget));
        exposition_head(out, "gatepost_in_flight_limit_bytes", "gauge",
                        "Limit of gatepost_in_flight_bytes: max_in_flight.");
        fprintf(out, "gatepost_in_flight_limit_bytes %" PRIu64 "\n", memory_budget_size(metrics->budget));
}

static void
render_events(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_events_total", "counter",
                        "Events published, by source and by the kind or pattern that chose the topic.");
        for (const struct metrics_kind *kind = atomic_load(&metrics->kinds); kind != NULL;
             kind = atomic_load(&kind->next)) {
                for (const struct metrics_events *each = atomic_load(&kind->events); each != NULL;
                     each = atomic_load(&each->next)) {
                        fprintf(out, "gatepost_events_total{source=\"%s\",kind=", each->source->name);
                        exposition_value(out, kind->name);
                        fprintf(out, "} %" PRIu64 "\n", metrics_get(&each->count));
                }
        }
}

static void
render_lookups(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_event_lookups_total", "counter",
                        "Events whose key or subject a JSON pointer has found in the body, or not.");
        for (const struct metrics_source *each = atomic_load(&metrics->sources); each != NULL;
             each = atomic_load(&each->next)) {
                for (size_t l = 0; l < EVENT_LOOKUP_N && each->name[0] != '\0'; l++)
                        fprintf(
                            out,
                            "gatepost_event_lookups_total{source=\"%s\",option=\"%s\",result=\"found\"} "
                            "%" PRIu64 "\n"
                            "gatepost_event_lookups_total{source=\"%s\",option=\"%s\",result=\"missing\"} "
                            "%" PRIu64 "\n",
                            each->name, metrics_lookup_name(l), metrics_get(&each->found[l]), each->name,
                            metrics_lookup_name(l), metrics_get(&each->missing[l]));
        }
}

static void
render_decisions(const struct metrics *metrics, FILE *out)
{
        const struct metrics_source *first = atomic_load(&metrics->sources);

        render_events(metrics, out);
        render_lookups(metrics, out);
        exposition_head(
            out, "gatepost_duplicates_total", "counter",
            "Duplicate deliveries dropped, by source; empty for a source that is not configured.");
        for (const struct metrics_source *each = first; each != NULL; each = atomic_load(&each->next))
                fprintf(out, "gatepost_duplicates_total{source=\"%s\"} %" PRIu64 "\n", each->name,
                        metrics_get(&each->duplicates));
        exposition_head(out, "gatepost_quarantined_total", "counter",
                        "Deliveries quarantined, by reason and by source, as for duplicates.");
        for (const struct metrics_source *each = first; each != NULL; each = atomic_load(&each->next)) {
                for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                        fprintf(out, "gatepost_quarantined_total{source=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                                each->name, judge_reason_name((enum quarantine_reason)r),
                                metrics_get(&each->quarantined[r]));
        }
}

static void
render_router(const struct metrics *metrics, FILE *out)
{
        render_decisions(metrics, out);
        exposition_head(out, "gatepost_test_deliveries_total", "counter",
                        "Test deliveries of gatepost doctor, dropped.");
        fprintf(out, "gatepost_test_deliveries_total %" PRIu64 "\n", metrics_get(&metrics->tests));
        exposition_head(out, "gatepost_transactions_total", "counter", "Transactions, by result.");
        fprintf(out, "gatepost_transactions_total{result=\"committed\"} %" PRIu64 "\n",
                metrics_get(&metrics->transactions[1]));
        fprintf(out, "gatepost_transactions_total{result=\"aborted\"} %" PRIu64 "\n",
                metrics_get(&metrics->transactions[0]));
        exposition_histogram(out, "gatepost_batch_records", "Records in a committed transaction.",
                             &metrics->histograms[HISTOGRAM_BATCH_RECORDS]);
        exposition_histogram(out, "gatepost_commit_seconds", "Time to commit a transaction.",
                             &metrics->histograms[HISTOGRAM_COMMIT]);
        exposition_histogram(out, "gatepost_delivery_seconds",
                             "Time from the reception of a delivery to the commit that publishes its event.",
                             &metrics->histograms[HISTOGRAM_DELIVERY]);
        metrics_router_render(metrics, out);
}

char *
metrics_render(const struct metrics *metrics, size_t *len)
{
        char *text = NULL;
        FILE *out = open_memstream(&text, len);

        if (out == NULL)
                return NULL;
        render_build(out);
        render_times(metrics->start_s, out);
        render_memory(out);
        render_descriptors(out);
        render_process(metrics, out);
        render_readiness(metrics, out);
        render_brokers(metrics, out);
        render_librdkafka(metrics, out);
        if (metrics->config->roles & CONFIG_RECEIVER) {
                render_receiver(metrics, out);
                render_connections(metrics, out);
                render_secrets(metrics, out);
                render_certificate(metrics, out);
                metrics_spool_render(metrics, out);
        }
        if (metrics->config->roles & CONFIG_ROUTER)
                render_router(metrics, out);
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
