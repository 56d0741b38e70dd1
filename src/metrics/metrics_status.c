#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kafka/outage.h"
#include "metrics/metrics_state.h"
#include "metrics/status_writer.h"

static void
put_versions(struct status_writer *writer)
{
        json_open_object(writer->json, "versions");
        for (size_t i = 0; i < METRICS_N_VERSIONS; i++) {
                const struct metrics_version version = metrics_version(i);

                status_writer_text(writer, i == 0 ? "gatepostd" : version.name, version.text);
        }
        json_close_object(writer->json);
}

/* The groups by which the process may access files, the effective one first. */
static void
put_groups(struct status_writer *writer)
{
        int n = getgroups(0, NULL);
        gid_t *groups = n <= 0 ? NULL : calloc((size_t)n, sizeof(*groups));

        n = groups == NULL ? 0 : getgroups(n, groups);
        json_open_array(writer->json, "groupIds");
        json_number(writer->json, NULL, (int64_t)getegid());
        for (int i = 0; i < n; i++)
                json_number(writer->json, NULL, (int64_t)groups[i]);
        json_close_array(writer->json);
        free(groups);
}

static void
put_process(struct status_writer *writer)
{
        int64_t now_s = clock_now_ms() / 1000;
        char time[CLOCK_RFC3339_SIZE];

        status_writer_text(writer, "instance", writer->metrics->config->instance);
        status_writer_text(writer, "time", clock_format_s(now_s, time));
        json_number(writer->json, "startTimeSeconds", writer->metrics->start_s);
        json_number(writer->json, "uptimeSeconds", now_s - writer->metrics->start_s);
        json_number(writer->json, "userId", (int64_t)geteuid());
        put_groups(writer);
        put_versions(writer);
}

static void
put_readiness(struct status_writer *writer)
{
        const struct health *health = writer->metrics->health;
        int is_ready = 1;

        json_open_object(writer->json, "roles");
        for (size_t i = 0; health != NULL && i < health->n_parts; i++) {
                char reason[HEALTH_REASON_SIZE] = "ready";

                is_ready &= health->parts[i].is_ready(health->parts[i].arg, reason) != 0;
                status_writer_text(writer, health->parts[i].name, reason);
        }
        json_close_object(writer->json);
        json_flag(writer->json, "ready", is_ready);
}

static void
put_brokers(struct status_writer *writer)
{
        const struct brokers *brokers = &writer->metrics->brokers;

        json_open_array(writer->json, "brokers");
        for (size_t i = 0; i < brokers->n; i++) {
                const struct broker *broker = &brokers->items[i];

                json_open_object(writer->json, NULL);
                status_writer_text(writer, "broker", broker->name);
                json_flag(writer->json, "up", broker->is_up);
                if (broker->rtt_us == 0)
                        json_null(writer->json, "roundTripSeconds");
                else
                        status_writer_fraction(writer, "roundTripSeconds", (double)broker->rtt_us / 1e6);
                json_close_object(writer->json);
        }
        json_close_array(writer->json);
}

static void
put_outage(struct status_writer *writer)
{
        char cause[OUTAGE_CAUSE_SIZE];
        int64_t since_s;

        if (outage_read(cause, &since_s)) {
                status_writer_text(writer, "kafkaProblem", cause);
                json_number(writer->json, "kafkaUnreachableSinceSeconds", since_s);
        } else {
                json_null(writer->json, "kafkaProblem");
                json_null(writer->json, "kafkaUnreachableSinceSeconds");
        }
}

void
metrics_set_embedded_broker(struct metrics *metrics, const char *address)
{
        metrics->embedded_broker = address;
}

static void
put_kafka(struct status_writer *writer)
{
        json_flag(writer->json, "kafkaReachable", metrics_get(&writer->metrics->kafka_reachable) != 0);
        put_outage(writer);
        status_writer_count(writer, "misconfiguredTopics", metrics_get(&writer->metrics->misconfigured));
        json_member(writer->json, "embeddedBroker", writer->metrics->embedded_broker);
        put_brokers(writer);
        json_open_object(writer->json, "kafkaClients");
        for (size_t c = 0; c < CLIENT_N; c++) {
                const struct metrics_clients *client = &writer->metrics->clients[c];
                const char *name = metrics_client_name(writer->metrics, (enum metrics_client)c);

                if (name == NULL)
                        continue;
                json_open_object(writer->json, name);
                status_writer_count(writer, "requests", metrics_get(&client->requests));
                status_writer_count(writer, "errors", metrics_get(&client->errors));
                status_writer_count(writer, "timeouts", metrics_get(&client->timeouts));
                status_writer_count(writer, "queuedRecords", metrics_get(&client->queued_records));
                json_close_object(writer->json);
        }
        json_close_object(writer->json);
}

static void
put_histogram(struct status_writer *writer, const char *name, enum metrics_histogram which)
{
        const struct histogram *histogram = &writer->metrics->histograms[which];
        struct histogram_figures all, recent;

        histogram_read(histogram, &all);
        recent = all;
        histogram_subtract(&recent, metrics_window_start(writer->metrics, which));
        json_open_object(writer->json, name);
        status_writer_figures(writer, histogram->scale, &all);
        json_open_object(writer->json, "recent");
        status_writer_figures(writer, histogram->scale, &recent);
        json_close_object(writer->json);
        json_close_object(writer->json);
}

static void
put_outcomes(struct status_writer *writer, const struct metrics_source *source)
{
        json_open_object(writer->json, source->name);
        for (size_t o = 0; o < OUTCOME_N; o++)
                status_writer_count(writer, metrics_outcome_name((enum metrics_outcome)o),
                                    metrics_get(&source->requests[o]));
        json_close_object(writer->json);
}

/* Requests to no source come last. */
static void
put_requests(struct status_writer *writer)
{
        const struct metrics_source *none = atomic_load(&writer->metrics->sources);
        const struct metrics_source *each = atomic_load(&none->next);

        json_open_object(writer->json, "requests");
        for (; each != NULL; each = atomic_load(&each->next))
                put_outcomes(writer, each);
        put_outcomes(writer, none);
        json_close_object(writer->json);
}

/* When each source had its last accepted delivery; null: none since the start. */
static void
put_last_accepted(struct status_writer *writer)
{
        const struct metrics_source *each = atomic_load(&writer->metrics->sources);

        json_open_object(writer->json, "lastAcceptedSeconds");
        while ((each = atomic_load(&each->next)) != NULL)
                status_writer_time(writer, each->name, metrics_get(&each->accepted_s));
        json_close_object(writer->json);
}

static void
put_secrets(struct status_writer *writer)
{
        const struct config *config = writer->metrics->newest;

        json_open_array(writer->json, "secrets");
        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];

                for (size_t i = 0; i < source->n_secret_files; i++) {
                        json_open_object(writer->json, NULL);
                        status_writer_text(writer, "source", source->name);
                        status_writer_text(writer, "file", source->secret_files[i].path);
                        json_number(writer->json, "modifiedSeconds", source->secret_files[i].written_s);
                        json_close_object(writer->json);
                }
        }
        json_close_array(writer->json);
}

static void
put_refusals(struct status_writer *writer)
{
        struct recent_event events[RECENT_EVENTS];
        size_t n = recent_read(metrics_recent_refusals((struct metrics *)(uintptr_t)writer->metrics), events);

        json_open_array(writer->json, "refusals");
        for (size_t i = 0; i < n; i++) {
                char client[ADDRESS_TEXT_SIZE];

                json_open_object(writer->json, NULL);
                json_number(writer->json, "timeSeconds", events[i].time_s);
                status_writer_count(writer, "count", events[i].count);
                status_writer_count(writer, "hourCount", events[i].hour_count);
                status_writer_text(writer, "source", events[i].source);
                status_writer_text(writer, "outcome", events[i].outcome);
                if (events[i].status == 0)
                        json_null(writer->json, "status"); /* a connection that was closed before a request */
                else
                        json_number(writer->json, "status", events[i].status);
                status_writer_text(writer, "client", address_format(&events[i].client, client));
                status_writer_text(writer, "requestId", events[i].request_id);
                status_writer_text(writer, "detail", events[i].detail);
                json_close_object(writer->json);
        }
        json_close_array(writer->json);
}

static void
put_receiver(struct status_writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        put_requests(writer);
        put_last_accepted(writer);
        put_refusals(writer);
        metrics_proxy_status(writer);
        put_histogram(writer, "ackSeconds", HISTOGRAM_ACK);
        put_histogram(writer, "verifySeconds", HISTOGRAM_VERIFY);
        metrics_spool_status(writer);
        put_secrets(writer);
        if (metrics->certificate_end_s != 0)
                json_number(writer->json, "certificateExpirySeconds", metrics->certificate_end_s);
}

static void
put_events(struct status_writer *writer)
{
        json_open_object(writer->json, "events");
        for (const struct metrics_kind *kind = atomic_load(&writer->metrics->kinds); kind != NULL;
             kind = atomic_load(&kind->next)) {
                char *name = status_writer_copy(writer, kind->name);

                status_writer_count(writer, name, metrics_events_of(kind));
                free(name);
        }
        json_close_object(writer->json);
}

static int
has_pointer(const struct config_source *source, size_t lookup)
{
        return lookup == EVENT_LOOKUP_KEY ? source->rules.key_from == EVENT_KEY_POINTER
                                          : source->rules.subject.n_segments > 0;
}

/* What the pointers of the newest configuration have looked up since it was loaded. */
static void
put_lookups(struct status_writer *writer)
{
        const struct config *config = writer->metrics->newest;

        json_open_array(writer->json, "lookups");
        for (const struct metrics_source *each = atomic_load(&writer->metrics->sources); each != NULL;
             each = atomic_load(&each->next)) {
                const struct config_source *source =
                    config_find_source(config, each->name, strlen(each->name));

                for (size_t l = 0; l < EVENT_LOOKUP_N; l++) {
                        if (source == NULL || !has_pointer(source, l))
                                continue;
                        json_open_object(writer->json, NULL);
                        status_writer_text(writer, "source", each->name);
                        status_writer_text(writer, "option", metrics_lookup_name(l));
                        status_writer_count(writer, "found",
                                            metrics_get(&each->found[l]) - each->found_before[l]);
                        status_writer_count(writer, "missing",
                                            metrics_get(&each->missing[l]) - each->missing_before[l]);
                        json_close_object(writer->json);
                }
        }
        json_close_array(writer->json);
}

static void
put_decisions(struct status_writer *writer)
{
        uint64_t duplicates = 0, quarantined[QUARANTINE_N_REASONS] = {0};
        const struct metrics_source *each = atomic_load(&writer->metrics->sources);

        for (; each != NULL; each = atomic_load(&each->next)) {
                duplicates += metrics_get(&each->duplicates);
                for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                        quarantined[r] += metrics_get(&each->quarantined[r]);
        }
        put_events(writer);
        put_lookups(writer);
        status_writer_count(writer, "duplicates", duplicates);
        status_writer_count(writer, "testDeliveries", metrics_get(&writer->metrics->tests));
        json_open_object(writer->json, "quarantined");
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                status_writer_count(writer, judge_reason_name((enum quarantine_reason)r), quarantined[r]);
        json_close_object(writer->json);
}

static void
put_recently_quarantined(struct status_writer *writer)
{
        struct recent_event events[RECENT_EVENTS];
        size_t n =
            recent_read(metrics_recent_quarantined((struct metrics *)(uintptr_t)writer->metrics), events);

        json_open_array(writer->json, "recentlyQuarantined");
        for (size_t i = 0; i < n; i++) {
                json_open_object(writer->json, NULL);
                json_number(writer->json, "timeSeconds", events[i].time_s);
                status_writer_text(writer, "source", events[i].source);
                status_writer_text(writer, "reason", events[i].outcome);
                status_writer_text(writer, "detail", events[i].detail);
                status_writer_text(writer, "deliveryId", events[i].delivery_id);
                json_number(writer->json, "partition", events[i].partition);
                json_number(writer->json, "offset", events[i].offset);
                json_close_object(writer->json);
        }
        json_close_array(writer->json);
}

static void
put_router(struct status_writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        put_decisions(writer);
        put_recently_quarantined(writer);
        json_open_object(writer->json, "transactions");
        status_writer_count(writer, "committed", metrics_get(&metrics->transactions[1]));
        status_writer_count(writer, "aborted", metrics_get(&metrics->transactions[0]));
        json_close_object(writer->json);
        metrics_router_status(writer);
        put_histogram(writer, "deliverySeconds", HISTOGRAM_DELIVERY);
        put_histogram(writer, "commitSeconds", HISTOGRAM_COMMIT);
        put_histogram(writer, "batchRecords", HISTOGRAM_BATCH_RECORDS);
}

static void
write_document(struct status_writer *writer)
{
        json_open_object(writer->json, NULL);
        put_process(writer);
        put_readiness(writer);
        put_kafka(writer);
        metrics_configuration(writer);
        if (writer->metrics->config->roles & CONFIG_RECEIVER)
                put_receiver(writer);
        if (writer->metrics->config->roles & CONFIG_ROUTER)
                put_router(writer);
        json_close_object(writer->json);
}

/* Copy the partitions, so that nothing is written under their lock. Returns 0, or -1 when memory fails. */
static int
copy_partitions(struct status_writer *writer)
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
        struct status_writer writer = {.metrics = metrics, .json = json_new(0)};
        char *text = NULL;

        writer.has_failed = copy_partitions(&writer) != 0;
        if (!writer.has_failed)
                write_document(&writer);
        free(writer.partitions);
        text = json_take(writer.json, len);
        if (!writer.has_failed)
                return text;
        free(text);
        return NULL;
}
