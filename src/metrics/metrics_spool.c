#include <inttypes.h>
#include <stdio.h>

#include "metrics/exposition.h"
#include "metrics/metrics_state.h"
#include "metrics/status_writer.h"

/* The figures of the spool: for /metrics, and the member `spool` of /status. */

struct row {
        const char *name; /* in /metrics, behind gatepost_spool_ */
        const char *type;
        const char *help;
        const char *member; /* of /status */
        uint64_t value;
};

#define N_ROWS 11

static void
list_rows(const struct spool_stats *stats, struct row rows[N_ROWS])
{
        const struct row all[N_ROWS] = {
            {"bytes", "gauge", "Bytes of the spool's segments.", "bytes", atomic_load(&stats->bytes)},
            {"limit_bytes", "gauge", "Limit of gatepost_spool_bytes: spool_max.", "limitBytes",
             stats->max_bytes},
            {"segments", "gauge", "Segments in the spool.", "segments", atomic_load(&stats->segments)},
            {"uncounted_segments", "gauge",
             "Segments of an earlier process whose records were not counted yet.", "uncountedSegments",
             atomic_load(&stats->uncounted)},
            {"records", "gauge", "Spooled deliveries that Kafka does not have yet.", "records",
             atomic_load(&stats->records)},
            {"written_total", "counter", "Deliveries written to the spool.", "written",
             atomic_load(&stats->written)},
            {"drained_total", "counter", "Spooled deliveries that Kafka has acknowledged.", "drained",
             atomic_load(&stats->drained)},
            {"refused_records", "gauge", "Spooled deliveries that Kafka refuses; they stay in the spool.",
             "refusedRecords", atomic_load(&stats->refused)},
            {"damaged_segments", "gauge", "Segments that are damaged, in the spool or put aside.",
             "damagedSegments", atomic_load(&stats->damaged)},
            {"lost_bytes_total", "counter", "Bytes of damaged segments that are not intact any more.",
             "lostBytes", atomic_load(&stats->lost_bytes)},
            {"lost_records_total", "counter",
             "Spooled deliveries that cannot be read back, because their segment was deleted or fails.",
             "lostRecords", atomic_load(&stats->lost_records)},
        };

        for (size_t i = 0; i < N_ROWS; i++)
                rows[i] = all[i];
}

static void
render_time(FILE *out, const char *name, const char *help, int64_t time_ms)
{
        exposition_head(out, name, "gauge", help);
        fprintf(out, "%s %.3f\n", name, (double)time_ms / 1000);
}

void
metrics_spool_render(const struct metrics *metrics, FILE *out)
{
        const struct spool_stats *stats = metrics->spool;
        struct row rows[N_ROWS];
        char name[64];

        if (stats == NULL)
                return;
        list_rows(stats, rows);
        for (size_t i = 0; i < N_ROWS; i++) {
                (void)snprintf(name, sizeof(name), "gatepost_spool_%s", rows[i].name);
                exposition_head(out, name, rows[i].type, rows[i].help);
                fprintf(out, "%s %" PRIu64 "\n", name, rows[i].value);
        }
        render_time(out, "gatepost_spool_oldest_timestamp_seconds",
                    "When the oldest delivery in the spool was received, since the epoch; 0 without any.",
                    spool_stats_oldest_ms(stats));
        render_time(out, "gatepost_spool_since_timestamp_seconds",
                    "Since when deliveries go to the spool; 0 while they go to Kafka.",
                    atomic_load(&stats->since_ms));
        exposition_head(out, "gatepost_spool_errors_total", "counter", "Failures of the spool, by error.");
        for (size_t i = 0; i < SPOOL_N_ERRORS; i++)
                fprintf(out, "gatepost_spool_errors_total{error=\"%s\"} %" PRIuFAST64 "\n",
                        spool_stats_error_name((enum spool_error)i), atomic_load(&stats->errors[i]));
        exposition_histogram(
            out, "gatepost_spool_sync_seconds",
            "Time to write deliveries to the spool and to sync them, those of one sync together.",
            &stats->sync);
}

/* Write the last failure, unless a delivery was stored since. */
static void
put_last_error(struct status_writer *writer, const struct spool_stats *stats)
{
        int error = atomic_load(&stats->last_error);

        if (error == SPOOL_N_ERRORS) {
                json_null(writer->json, "lastError");
                return;
        }
        json_open_object(writer->json, "lastError");
        json_member(writer->json, "error", spool_stats_error_name((enum spool_error)error));
        json_number(writer->json, "timeSeconds", (int64_t)atomic_load(&stats->last_error_s));
        json_close_object(writer->json);
}

void
metrics_spool_status(struct status_writer *writer)
{
        const struct spool_stats *stats = writer->metrics->spool;
        struct histogram_figures sync;
        struct row rows[N_ROWS];

        if (stats == NULL)
                return;
        list_rows(stats, rows);
        json_open_object(writer->json, "spool");
        status_writer_text(writer, "directory", stats->directory);
        json_number(writer->json, "device", (int64_t)stats->device);
        json_number(writer->json, "inode", (int64_t)stats->inode);
        json_flag(writer->json, "inPlace", !atomic_load(&stats->is_displaced));
        status_writer_time(writer, "spoolingSinceSeconds", (uint64_t)atomic_load(&stats->since_ms) / 1000);
        status_writer_time(writer, "oldestSeconds", (uint64_t)spool_stats_oldest_ms(stats) / 1000);
        for (size_t i = 0; i < N_ROWS; i++)
                json_number(writer->json, rows[i].member, (int64_t)rows[i].value);
        put_last_error(writer, stats);
        json_open_object(writer->json, "errors");
        for (size_t i = 0; i < SPOOL_N_ERRORS; i++)
                json_number(writer->json, spool_stats_error_name((enum spool_error)i),
                            (int64_t)atomic_load(&stats->errors[i]));
        json_close_object(writer->json);
        histogram_read(&stats->sync, &sync);
        json_open_object(writer->json, "syncSeconds");
        status_writer_figures(writer, stats->sync.scale, &sync);
        json_close_object(writer->json);
        json_close_object(writer->json);
}
