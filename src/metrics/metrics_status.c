#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_memory.h"
#include "base/text.h"
#include "metrics/metrics_state.h"

/* The generator of the document, with memory that can fail. */
struct writer {
        const struct metrics *metrics;
        struct json_memory memory;
        yajl_gen json;
        struct metrics_partition *partitions;
        size_t n_partitions;
        char *text; /* the finished document, of len bytes */
        size_t len;
};

/*
 * Write a string, or a name. Bytes that are not UTF-8 and control characters become \xNN, as in the
 * Prometheus text.
 */
static void
put_text(struct writer *writer, const char *text)
{
        size_t size = 4 * strlen(text) + 1, used = 0;
        char *safe = writer->memory.functions.malloc(writer->memory.functions.ctx, size);

        for (size_t len = strlen(text), n; len > 0; text += n, len -= n) {
                n = text_printable(text, len);
                if (n == 0) {
                        n = 1;
                        used += (size_t)snprintf(safe + used, size - used, "\\x%02x", (unsigned char)*text);
                } else {
                        memcpy(safe + used, text, n);
                        used += n;
                }
        }
        (void)yajl_gen_string(writer->json, (const unsigned char *)safe, used);
        writer->memory.functions.free(writer->memory.functions.ctx, safe);
}

static void
put_member(struct writer *writer, const char *name, const char *text)
{
        json_text(writer->json, name);
        put_text(writer, text);
}

static void
put_fraction(struct writer *writer, const char *name, double value)
{
        char text[32];

        json_text(writer->json, name);
        (void)yajl_gen_number(writer->json, text, (size_t)snprintf(text, sizeof(text), "%.9g", value));
}

static void
put_count(struct writer *writer, const char *name, uint64_t count)
{
        json_number(writer->json, name, (int64_t)count);
}

static void
open_map(struct writer *writer, const char *name)
{
        if (name != NULL)
                json_text(writer->json, name);
        (void)yajl_gen_map_open(writer->json);
}

static void
close_map(struct writer *writer)
{
        (void)yajl_gen_map_close(writer->json);
}

static void
put_versions(struct writer *writer)
{
        open_map(writer, "versions");
        for (size_t i = 0; i < METRICS_N_VERSIONS; i++) {
                const struct metrics_version version = metrics_version(i);

                put_member(writer, i == 0 ? "gatepostd" : version.name, version.text);
        }
        close_map(writer);
}

static void
put_process(struct writer *writer)
{
        int64_t now_s = clock_now_ms() / 1000;
        char time[CLOCK_RFC3339_SIZE];

        put_member(writer, "instance", writer->metrics->config->instance);
        put_member(writer, "time", clock_format_s(now_s, time));
        json_number(writer->json, "startTimeSeconds", writer->metrics->start_s);
        json_number(writer->json, "uptimeSeconds", now_s - writer->metrics->start_s);
        put_versions(writer);
}

static void
put_readiness(struct writer *writer)
{
        const struct health *health = writer->metrics->health;
        int is_ready = 1;

        open_map(writer, "roles");
        for (size_t i = 0; health != NULL && i < health->n_parts; i++) {
                char reason[HEALTH_REASON_SIZE] = "ready";

                is_ready &= health->parts[i].is_ready(health->parts[i].arg, reason) != 0;
                put_member(writer, health->parts[i].name, reason);
        }
        close_map(writer);
        json_flag(writer->json, "ready", is_ready);
}

static void
put_brokers(struct writer *writer)
{
        const struct brokers *brokers = &writer->metrics->brokers;

        json_text(writer->json, "brokers");
        (void)yajl_gen_array_open(writer->json);
        for (size_t i = 0; i < brokers->n; i++) {
                const struct broker *broker = &brokers->items[i];

                open_map(writer, NULL);
                put_member(writer, "broker", broker->name);
                json_flag(writer->json, "up", broker->is_up);
                if (broker->rtt_us == 0)
                        json_null(writer->json, "roundTripSeconds");
                else
                        put_fraction(writer, "roundTripSeconds", (double)broker->rtt_us / 1e6);
                close_map(writer);
        }
        (void)yajl_gen_array_close(writer->json);
}

static void
put_kafka(struct writer *writer)
{
        json_flag(writer->json, "kafkaReachable", metrics_get(&writer->metrics->kafka_reachable) != 0);
        put_brokers(writer);
        open_map(writer, "kafkaClients");
        for (size_t c = 0; c < CLIENT_N; c++) {
                const struct metrics_clients *client = &writer->metrics->clients[c];
                const char *name = metrics_client_name(writer->metrics, (enum metrics_client)c);

                if (name == NULL)
                        continue;
                open_map(writer, name);
                put_count(writer, "requests", metrics_get(&client->requests));
                put_count(writer, "errors", metrics_get(&client->errors));
                put_count(writer, "timeouts", metrics_get(&client->timeouts));
                put_count(writer, "queuedRecords", metrics_get(&client->queued_records));
                close_map(writer);
        }
        close_map(writer);
}

/* The number of values and two quantiles; without values, the quantiles are null. */
static void
put_figures(struct writer *writer, const struct histogram_scale *scale,
            const struct histogram_figures *figures)
{
        static const struct {
                const char *name;
                double q;
        } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}};

        put_count(writer, "count", figures->count);
        for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
                if (figures->count == 0)
                        json_null(writer->json, quantiles[i].name);
                else
                        put_fraction(writer, quantiles[i].name,
                                     histogram_quantile(scale, figures, quantiles[i].q));
        }
}

static void
put_histogram(struct writer *writer, const char *name, enum metrics_histogram which)
{
        const struct histogram *histogram = &writer->metrics->histograms[which];
        struct histogram_figures all, recent;

        histogram_read(histogram, &all);
        recent = all;
        histogram_subtract(&recent, metrics_window_start(writer->metrics, which));
        open_map(writer, name);
        put_figures(writer, histogram->scale, &all);
        open_map(writer, "recent");
        put_figures(writer, histogram->scale, &recent);
        close_map(writer);
        close_map(writer);
}

static void
put_outcomes(struct writer *writer, const struct metrics_requests *requests)
{
        json_text(writer->json, requests->source);
        open_map(writer, NULL);
        for (size_t o = 0; o < OUTCOME_N; o++)
                put_count(writer, metrics_outcome_name((enum metrics_outcome)o),
                          metrics_get(&requests->counts[o]));
        close_map(writer);
}

static void
put_secrets(struct writer *writer)
{
        const struct config *config = writer->metrics->newest;
        int64_t now_s = clock_now_ms() / 1000;

        json_text(writer->json, "secrets");
        (void)yajl_gen_array_open(writer->json);
        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];

                for (size_t i = 0; i < source->n_secret_files; i++) {
                        int64_t age_s = now_s - source->secret_files[i].written_s;

                        open_map(writer, NULL);
                        put_member(writer, "source", source->name);
                        put_member(writer, "file", source->secret_files[i].path);
                        json_number(writer->json, "ageSeconds", age_s > 0 ? age_s : 0);
                        close_map(writer);
                }
        }
        (void)yajl_gen_array_close(writer->json);
}

static void
put_receiver(struct writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        open_map(writer, "requests");
        for (const struct metrics_requests *each = metrics->requests->next; each != NULL; each = each->next)
                put_outcomes(writer, each);
        put_outcomes(writer, metrics->requests);
        close_map(writer);
        put_histogram(writer, "ackSeconds", HISTOGRAM_ACK);
        put_histogram(writer, "verifySeconds", HISTOGRAM_VERIFY);
        put_secrets(writer);
        if (metrics->certificate_end_s != 0)
                json_number(writer->json, "certificateExpirySeconds", metrics->certificate_end_s);
}

static void
put_partitions(struct writer *writer)
{
        json_text(writer->json, "partitions");
        (void)yajl_gen_array_open(writer->json);
        for (size_t i = 0; i < writer->n_partitions; i++) {
                open_map(writer, NULL);
                json_number(writer->json, "partition", writer->partitions[i].id);
                put_member(writer, "state", writer->partitions[i].state);
                put_member(writer, "cause", writer->partitions[i].cause);
                put_count(writer, "lagRecords", writer->partitions[i].lag);
                close_map(writer);
        }
        (void)yajl_gen_array_close(writer->json);
}

static void
put_decisions(struct writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        open_map(writer, "events");
        for (const struct metrics_events *events = atomic_load(&metrics->events); events != NULL;
             events = atomic_load(&events->next)) {
                put_text(writer, events->kind);
                (void)yajl_gen_integer(writer->json, (long long)metrics_get(&events->count));
        }
        close_map(writer);
        put_count(writer, "duplicates", metrics_get(&metrics->duplicates));
        open_map(writer, "quarantined");
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                put_count(writer, judge_reason_name((enum quarantine_reason)r),
                          metrics_get(&metrics->quarantined[r]));
        close_map(writer);
}

static void
put_router(struct writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        put_decisions(writer);
        open_map(writer, "transactions");
        put_count(writer, "committed", metrics_get(&metrics->transactions[1]));
        put_count(writer, "aborted", metrics_get(&metrics->transactions[0]));
        close_map(writer);
        put_count(writer, "lagRecords", metrics_get(&metrics->lag));
        put_fraction(writer, "oldestRecordAgeSeconds", (double)metrics_get(&metrics->oldest_ms) / 1000);
        put_count(writer, "rememberedIds", metrics_get(&metrics->remembered_ids));
        put_partitions(writer);
        put_histogram(writer, "eventAgeSeconds", HISTOGRAM_EVENT_AGE);
        put_histogram(writer, "commitSeconds", HISTOGRAM_COMMIT);
        put_histogram(writer, "batchRecords", HISTOGRAM_BATCH_RECORDS);
}

/* Keep a copy of the document; NULL when memory fails. */
static void
take_text(struct writer *writer)
{
        const unsigned char *text;

        if (yajl_gen_get_buf(writer->json, &text, &writer->len) != yajl_gen_status_ok)
                return;
        writer->text = malloc(writer->len);
        if (writer->text != NULL)
                memcpy(writer->text, text, writer->len);
}

static void
write_document(struct writer *writer)
{
        writer->json = yajl_gen_alloc(&writer->memory.functions);
        open_map(writer, NULL);
        put_process(writer);
        put_readiness(writer);
        put_kafka(writer);
        if (writer->metrics->config->roles & CONFIG_RECEIVER)
                put_receiver(writer);
        if (writer->metrics->config->roles & CONFIG_ROUTER)
                put_router(writer);
        close_map(writer);
        take_text(writer);
}

/* Copy the partitions, so that nothing is written under their lock. Returns 0, or -1 when memory fails. */
static int
copy_partitions(struct writer *writer)
{
        const struct metrics *metrics = writer->metrics;
        pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&metrics->mutex;
        size_t n;

        pthread_mutex_lock(mutex);
        n = metrics->n_partitions;
        writer->partitions = malloc((n + 1) * sizeof(*writer->partitions));
        if (writer->partitions != NULL && n > 0)
                memcpy(writer->partitions, metrics->partitions, n * sizeof(*writer->partitions));
        pthread_mutex_unlock(mutex);
        writer->n_partitions = n;
        return writer->partitions == NULL ? -1 : 0;
}

char *
metrics_status(const struct metrics *metrics, size_t *len)
{
        struct writer writer = {.metrics = metrics};

        if (copy_partitions(&writer) != 0)
                return NULL;
        json_memory_init(&writer.memory);
        if (setjmp(writer.memory.failed) == 0)
                write_document(&writer);
        json_memory_clear(&writer.memory);
        free(writer.partitions);
        *len = writer.len;
        return writer.text;
}
