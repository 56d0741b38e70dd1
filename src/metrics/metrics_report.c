#include "metrics/metrics_report.h"

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
#include "base/mem.h"
#include "kafka/outage.h"
#include "metrics/metrics_state.h"

/* Writes /metrics and /status: what every process has. Its roles follow, in files of their own. */

/* Return the number of open file descriptors, or -1. */
static long
count_descriptors(void)
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

/* Write a figure of /metrics alone. */
static void
put_gauge(struct figures *to, const char *name, const char *help, uint64_t value)
{
        figures_count(to, &(struct figure){name, "gauge", help, NULL}, value);
}

static void
put_memory(struct figures *to)
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
        put_gauge(to, "process_resident_memory_bytes", "Resident memory.", resident * page);
        put_gauge(to, "process_virtual_memory_bytes", "Virtual memory.", total * page);
}

static double
seconds_of(struct timeval time)
{
        return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Write the metrics that other programs have as well. */
static void
put_resources(struct figures *to)
{
        static const struct figure cpu = {"process_cpu_seconds_total", "counter", "User and system CPU time.",
                                          NULL};
        struct rlimit limit;
        struct rusage usage;
        long n = count_descriptors();

        if (to->text == NULL)
                return;
        if (getrusage(RUSAGE_SELF, &usage) == 0) {
                figures_head(to, &cpu);
                fprintf(to->text, "%s %.6f\n", cpu.name,
                        seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
        }
        put_memory(to);
        if (n >= 0)
                put_gauge(to, "process_open_fds", "Open file descriptors.", (uint64_t)n);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                put_gauge(to, "process_max_fds", "Limit of open file descriptors.", limit.rlim_cur);
}

static void
put_versions(struct figures *to)
{
        static const struct figure build = {"gatepost_build_info", "gauge",
                                            "1, labelled with the versions in use.", NULL};
        const char *const versions[] = {"version",    PACKAGE_VERSION,
                                        "librdkafka", rd_kafka_version_str(),
                                        "openssl",    OpenSSL_version(OPENSSL_VERSION_STRING),
                                        "libevent",   event_get_version(),
                                        NULL};

        figures_head(to, &build);
        if (to->text != NULL) {
                figures_begin_sample(to, build.name, versions);
                fputs("1\n", to->text);
        }
        figures_open(to, "versions");
        for (size_t i = 0; versions[i] != NULL; i += 2)
                figures_text(to, i == 0 ? "gatepostd" : versions[i], versions[i + 1]);
        figures_close(to);
}

static void
put_process(const struct metrics *metrics, struct figures *to)
{
        static const struct figure start = {"process_start_time_seconds", "gauge",
                                            "When the process started, since the epoch.", "startTimeSeconds"};
        int64_t now_s = clock_now_ms() / 1000;
        char time[CLOCK_RFC3339_SIZE];

        figures_text(to, "instance", metrics->config->instance);
        figures_text(to, "time", clock_format_s(now_s, time));
        figures_number(to, "pid", getpid());
        figures_count(to, &start, (uint64_t)metrics->start_s);
        figures_number(to, "uptimeSeconds", now_s - metrics->start_s);
        put_versions(to);
        put_resources(to);
}

static void
put_readiness(const struct metrics *metrics, struct figures *to)
{
        static const struct figure ready = {"gatepost_ready", "gauge",
                                            "1 when a role is ready, as in /readyz.", "ready"};
        const struct health *health = metrics->health;
        int are_ready = 1;

        figures_head(to, &ready);
        figures_open(to, "roles");
        for (size_t i = 0; i < health->n_parts; i++) {
                const struct health_part *part = &health->parts[i];
                char reason[HEALTH_REASON_SIZE] = "ready";
                int is_ready = part->is_ready(part->arg, reason) != 0;

                are_ready &= is_ready;
                if (to->text != NULL) {
                        figures_begin_sample(to, ready.name, FIGURE_LABELS("role", part->name));
                        fprintf(to->text, "%d\n", is_ready);
                }
                figures_text(to, part->name, reason);
        }
        figures_close(to);
        if (to->json != NULL)
                json_flag(to->json, ready.member, are_ready);
}

static void
put_outage(struct figures *to)
{
        char cause[OUTAGE_CAUSE_SIZE];
        int64_t since_s = 0;
        int is_away = outage_read(cause, &since_s);

        figures_text(to, "kafkaProblem", is_away ? cause : NULL);
        figures_time(to, "kafkaUnreachableSinceSeconds", is_away ? since_s : 0);
}

static void
render_brokers(const struct brokers *brokers, struct figures *to)
{
        static const struct figure up = {"gatepost_kafka_broker_up", "gauge",
                                         "1 for each broker that is connected, 0 for one that is not.", NULL};
        static const struct figure rtt = {
            "gatepost_kafka_broker_rtt_seconds", "gauge",
            "Round trip of the last request for metadata to each connected broker.", NULL};

        figures_head(to, &up);
        for (size_t i = 0; i < brokers->n; i++)
                figures_sample(to, &up, FIGURE_LABELS("broker", brokers->items[i].name),
                               brokers->items[i].is_up != 0);
        figures_head(to, &rtt);
        for (size_t i = 0; i < brokers->n; i++) {
                if (brokers->items[i].rtt_us == 0)
                        continue;
                figures_begin_sample(to, rtt.name, FIGURE_LABELS("broker", brokers->items[i].name));
                fprintf(to->text, "%.6f\n", (double)brokers->items[i].rtt_us / 1e6);
        }
}

static void
put_brokers(const struct brokers *brokers, struct figures *to)
{
        if (to->text != NULL) {
                render_brokers(brokers, to);
                return;
        }
        figures_open_list(to, "brokers");
        for (size_t i = 0; i < brokers->n; i++) {
                const struct broker *broker = &brokers->items[i];

                figures_open(to, NULL);
                figures_text(to, "broker", broker->name);
                json_flag(to->json, "up", broker->is_up);
                if (broker->rtt_us == 0)
                        figures_text(to, "roundTripSeconds", NULL);
                else
                        figures_fraction(to, "roundTripSeconds", (double)broker->rtt_us / 1e6);
                figures_close(to);
        }
        figures_close_list(to);
}

/* The roles of Kafka clients, by their label. */
static const struct {
        const char *name;
        unsigned role;
} clients[CLIENT_N] = {
    [CLIENT_RECEIVER] = {"receiver", CONFIG_RECEIVER},
    [CLIENT_ROUTER] = {"router", CONFIG_ROUTER},
};

/* The counts of librdkafka, of each role that the process has. */
static const struct client_row {
        struct figure figure;
        size_t offset; /* in struct metrics_clients */
} client_rows[] = {
    {{"gatepost_kafka_requests_total", "counter", "Requests sent to brokers, by the role that sent them.",
      NULL},
     offsetof(struct metrics_clients, requests)},
    {{"gatepost_kafka_request_errors_total", "counter", "Requests and responses lost to transport errors.",
      NULL},
     offsetof(struct metrics_clients, errors)},
    {{"gatepost_kafka_request_timeouts_total", "counter", "Requests that timed out.", NULL},
     offsetof(struct metrics_clients, timeouts)},
    {{"gatepost_kafka_request_retries_total", "counter", "Requests that were retried.", NULL},
     offsetof(struct metrics_clients, retries)},
    {{"gatepost_kafka_queue_records", "gauge", "Records queued to be sent, or fetched and not yet processed.",
      NULL},
     offsetof(struct metrics_clients, queued_records)},
    {{"gatepost_kafka_queue_bytes", "gauge", "Bytes of these records.", NULL},
     offsetof(struct metrics_clients, queued_bytes)},
};

static uint64_t
client_count(const struct metrics *metrics, size_t client, const struct client_row *row)
{
        return metrics_read((const counter *)((const char *)&metrics->clients[client] + row->offset));
}

static void
render_clients(const struct metrics *metrics, struct figures *to)
{
        for (size_t i = 0; i < ARRAY_LEN(client_rows); i++) {
                figures_head(to, &client_rows[i].figure);
                for (size_t c = 0; c < CLIENT_N; c++) {
                        if (metrics->config->roles & clients[c].role)
                                figures_sample(to, &client_rows[i].figure,
                                               FIGURE_LABELS("client", clients[c].name),
                                               client_count(metrics, c, &client_rows[i]));
                }
        }
}

static void
put_reloads(const struct metrics *metrics, struct figures *to)
{
        static const struct figure
            applied = {"gatepost_config_last_reload_success_timestamp_seconds", "gauge",
                       "When a configuration was last applied, at startup or by a reload, since the epoch.",
                       NULL},
            succeeded = {"gatepost_config_last_reload_successful", "gauge",
                         "1 when the last reload succeeded, 0 when it failed.", NULL};

        figures_flag(to, &succeeded, metrics->refused_s == 0);
        figures_count(to, &applied, (uint64_t)metrics->applied_s);
}

static void
put_refused_reload(const struct metrics *metrics, struct figures *to)
{
        if (metrics->refused_s == 0) {
                figures_text(to, "refusedReload", NULL);
                return;
        }
        figures_open(to, "refusedReload");
        figures_number(to, "timeSeconds", metrics->refused_s);
        figures_text(to, "reason", metrics->refused.text);
        figures_close(to);
}

/* Write which configuration is in use; it has no secrets. */
static void
put_configuration(const struct metrics *metrics, struct figures *to)
{
        const struct config *newest = metrics->newest;

        figures_open(to, "configuration");
        figures_text(to, "file", newest->file);
        figures_number(to, "loadedSeconds", metrics->applied_s);
        put_refused_reload(metrics, to);
        figures_open_list(to, "awaitingRestart");
        for (size_t i = 0; i < newest->n_awaiting; i++)
                figures_text(to, NULL, newest->awaiting[i]);
        figures_close_list(to);
        figures_close(to);
}

/* Write either document. */
static void
put_all(const struct metrics *metrics, struct figures *to)
{
        figures_open(to, NULL);
        put_process(metrics, to);
        put_readiness(metrics, to);
        put_reloads(metrics, to);
        metrics_put_value(metrics, METRICS_KAFKA_REACHABLE, to);
        put_outage(to);
        metrics_put_value(metrics, METRICS_MISCONFIGURED, to);
        figures_text(to, "embeddedBroker", metrics->embedded_broker);
        put_brokers(&metrics->brokers, to);
        if (to->text != NULL)
                render_clients(metrics, to);
        put_configuration(metrics, to);
        if (metrics->config->roles & CONFIG_RECEIVER)
                metrics_put_receiver(metrics, to);
        if (metrics->config->roles & CONFIG_ROUTER)
                metrics_put_router(metrics, to);
        figures_close(to);
}

char *
metrics_report_prometheus(const struct metrics *metrics, size_t *len)
{
        char *text = NULL;
        struct figures to = {.text = open_memstream(&text, len)};

        if (to.text == NULL)
                mem_exit();
        put_all(metrics, &to);
        if (fclose(to.text) != 0)
                mem_exit();
        return text;
}

char *
metrics_report_status(const struct metrics *metrics, size_t *len)
{
        struct figures to = {.json = json_new(0)};

        put_all(metrics, &to);
        return json_take(to.json, len);
}
