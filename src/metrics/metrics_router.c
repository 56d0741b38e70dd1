#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "metrics/exposition.h"
#include "metrics/metrics_state.h"
#include "metrics/status_writer.h"

/* What is known of the partitions of `deliveries` and of their dedup tables: for /metrics and /status. */

void
metrics_set_partitions(struct metrics *metrics, const struct metrics_partition *partitions, size_t n)
{
        pthread_mutex_lock(&metrics->mutex);
        metrics->partitions = mem_resize(metrics->partitions, n, sizeof(*partitions));
        if (n > 0)
                memcpy(metrics->partitions, partitions, n * sizeof(*partitions));
        metrics->n_partitions = n;
        pthread_mutex_unlock(&metrics->mutex);
}

static void
count_loss(struct metrics_loss *loss, uint64_t n)
{
        (void)atomic_fetch_add_explicit(&loss->count, n, memory_order_relaxed);
        atomic_store(&loss->time_s, (uint64_t)clock_now_ms() / 1000);
}

void
metrics_count_deleted(struct metrics *metrics, uint64_t n)
{
        count_loss(&metrics->deleted, n);
}

void
metrics_count_truncation(struct metrics *metrics)
{
        count_loss(&metrics->truncations, 1);
}

void
metrics_count_added(struct metrics *metrics, uint64_t n)
{
        count_loss(&metrics->added, n);
}

void
metrics_set_router(struct metrics *metrics, const struct metrics_router *router)
{
        atomic_store(&metrics->remembered_ids, router->remembered_ids);
        atomic_store(&metrics->lag, router->lag);
        atomic_store(&metrics->oldest_ms, router->oldest_ms);
        atomic_store(&metrics->state_files, router->state_files);
        atomic_store(&metrics->state_bytes, router->state_bytes);
        atomic_store(&metrics->state_errors, router->state_errors);
}

static void
render_partitions(const struct metrics *metrics, FILE *out)
{
        pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&metrics->mutex;

        pthread_mutex_lock(mutex);
        exposition_head(out, "gatepost_router_partition_state", "gauge",
                        "1 for the state of each partition assigned to this router or to none.");
        for (size_t i = 0; i < metrics->n_partitions; i++)
                fprintf(out,
                        "gatepost_router_partition_state{partition=\"%d\",state=\"%s\",cause=\"%s\"} 1\n",
                        (int)metrics->partitions[i].id, metrics->partitions[i].state,
                        metrics->partitions[i].cause);
        exposition_head(out, "gatepost_router_partition_lag_records", "gauge",
                        "Records not routed yet, by partition.");
        for (size_t i = 0; i < metrics->n_partitions; i++)
                fprintf(out, "gatepost_router_partition_lag_records{partition=\"%d\"} %" PRIu64 "\n",
                        (int)metrics->partitions[i].id, metrics->partitions[i].lag);
        exposition_head(out, "gatepost_router_partition_restore_records", "gauge",
                        "Records to be read for the dedup table before the partition is routed.");
        for (size_t i = 0; i < metrics->n_partitions; i++)
                fprintf(out, "gatepost_router_partition_restore_records{partition=\"%d\"} %" PRIu64 "\n",
                        (int)metrics->partitions[i].id, metrics->partitions[i].to_read);
        pthread_mutex_unlock(mutex);
}

void
metrics_router_render(const struct metrics *metrics, FILE *out)
{
        exposition_head(out, "gatepost_router_lag_records", "gauge",
                        "Records not routed yet, of the partitions of this router.");
        fprintf(out, "gatepost_router_lag_records %" PRIu64 "\n", metrics_get(&metrics->lag));
        exposition_head(out, "gatepost_router_oldest_record_timestamp_seconds", "gauge",
                        "Since when the oldest record not routed yet can have waited; 0 when there is none.");
        fprintf(out, "gatepost_router_oldest_record_timestamp_seconds %.3f\n",
                (double)metrics_get(&metrics->oldest_ms) / 1000);
        render_partitions(metrics, out);
        exposition_head(out, "gatepost_deleted_before_routing_total", "counter",
                        "Records that retention deleted before they were routed.");
        fprintf(out, "gatepost_deleted_before_routing_total %" PRIu64 "\n",
                metrics_get(&metrics->deleted.count));
        exposition_head(out, "gatepost_log_truncations_total", "counter",
                        "Times that Kafka lost records that had been routed.");
        fprintf(out, "gatepost_log_truncations_total %" PRIu64 "\n",
                metrics_get(&metrics->truncations.count));
        exposition_head(out, "gatepost_partitions_added_total", "counter",
                        "Partitions that were added to deliveries: a repeat may be published again.");
        fprintf(out, "gatepost_partitions_added_total %" PRIu64 "\n", metrics_get(&metrics->added.count));
        exposition_head(out, "gatepost_remembered_ids", "gauge", "Delivery-ids in the dedup tables.");
        fprintf(out, "gatepost_remembered_ids %" PRIu64 "\n", metrics_get(&metrics->remembered_ids));
        exposition_head(out, "gatepost_state_files", "gauge", "Files of the dedup tables.");
        fprintf(out, "gatepost_state_files %" PRIu64 "\n", metrics_get(&metrics->state_files));
        exposition_head(out, "gatepost_state_bytes", "gauge", "Size of these files.");
        fprintf(out, "gatepost_state_bytes %" PRIu64 "\n", metrics_get(&metrics->state_bytes));
        exposition_head(out, "gatepost_state_errors_total", "counter", "Failures to write these files.");
        fprintf(out, "gatepost_state_errors_total %" PRIu64 "\n", metrics_get(&metrics->state_errors));
}

static void
put_loss(struct status_writer *writer, const char *name, const struct metrics_loss *loss)
{
        json_open_object(writer->json, name);
        status_writer_count(writer, "count", metrics_get(&loss->count));
        status_writer_time(writer, "timeSeconds", metrics_get(&loss->time_s));
        json_close_object(writer->json);
}

static void
put_partitions(struct status_writer *writer)
{
        json_open_array(writer->json, "partitions");
        for (size_t i = 0; i < writer->n_partitions; i++) {
                json_open_object(writer->json, NULL);
                json_number(writer->json, "partition", writer->partitions[i].id);
                status_writer_text(writer, "state", writer->partitions[i].state);
                status_writer_text(writer, "cause", writer->partitions[i].cause);
                status_writer_count(writer, "lagRecords", writer->partitions[i].lag);
                status_writer_count(writer, "restoreRecords", writer->partitions[i].to_read);
                if (writer->partitions[i].committed < 0)
                        json_null(writer->json, "committedOffset");
                else
                        json_number(writer->json, "committedOffset", writer->partitions[i].committed);
                json_close_object(writer->json);
        }
        json_close_array(writer->json);
}

void
metrics_router_status(struct status_writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        put_loss(writer, "deletedBeforeRouting", &metrics->deleted);
        put_loss(writer, "logTruncations", &metrics->truncations);
        put_loss(writer, "partitionsAdded", &metrics->added);
        status_writer_count(writer, "lagRecords", metrics_get(&metrics->lag));
        status_writer_time(writer, "oldestRecordSeconds", metrics_get(&metrics->oldest_ms) / 1000);
        status_writer_count(writer, "rememberedIds", metrics_get(&metrics->remembered_ids));
        if (metrics->config->state != NULL) {
                json_open_object(writer->json, "state");
                status_writer_count(writer, "files", metrics_get(&metrics->state_files));
                status_writer_count(writer, "bytes", metrics_get(&metrics->state_bytes));
                status_writer_count(writer, "errors", metrics_get(&metrics->state_errors));
                json_close_object(writer->json);
        }
        put_partitions(writer);
}
