#include "base/compiler.h"
#include "metrics/metrics_state.h"

/* The figures of the spool: for /metrics, and the member `spool` of /status. */

static void
put_counts(const struct spool_stats *stats, struct figures *to)
{
        const struct {
                struct figure figure;
                uint64_t value;
        } rows[] = {
            {{"gatepost_spool_bytes", "gauge", "Bytes of the spool's segments.", "bytes"},
             atomic_load(&stats->bytes)},
            {{"gatepost_spool_limit_bytes", "gauge", "Limit of gatepost_spool_bytes: spool_max.",
              "limitBytes"},
             stats->max_bytes},
            {{"gatepost_spool_segments", "gauge", "Segments in the spool.", "segments"},
             atomic_load(&stats->segments)},
            {{"gatepost_spool_uncounted_segments", "gauge",
              "Segments of an earlier process whose records were not counted yet.", "uncountedSegments"},
             atomic_load(&stats->uncounted)},
            {{"gatepost_spool_records", "gauge", "Spooled deliveries that Kafka does not have yet.",
              "records"},
             atomic_load(&stats->records)},
            {{"gatepost_spool_written_total", "counter", "Deliveries written to the spool.", "written"},
             atomic_load(&stats->written)},
            {{"gatepost_spool_drained_total", "counter", "Spooled deliveries that Kafka has acknowledged.",
              "drained"},
             atomic_load(&stats->drained)},
            {{"gatepost_spool_refused_records", "gauge",
              "Spooled deliveries that Kafka refuses; they stay in the spool.", "refusedRecords"},
             atomic_load(&stats->refused)},
            {{"gatepost_spool_damaged_segments", "gauge",
              "Segments that are damaged, in the spool or put aside.", "damagedSegments"},
             atomic_load(&stats->damaged)},
            {{"gatepost_spool_lost_bytes_total", "counter",
              "Bytes of damaged segments that are not intact any more.", "lostBytes"},
             atomic_load(&stats->lost_bytes)},
            {{"gatepost_spool_lost_records_total", "counter",
              "Spooled deliveries that cannot be read back, because their segment was deleted or fails.",
              "lostRecords"},
             atomic_load(&stats->lost_records)},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                figures_count(to, &rows[i].figure, rows[i].value);
}

static void
put_moments(const struct spool_stats *stats, struct figures *to)
{
        static const struct figure
            oldest = {"gatepost_spool_oldest_timestamp_seconds", "gauge",
                      "When the oldest delivery in the spool was received, since the epoch; 0 without any.",
                      "oldestSeconds"},
            since = {"gatepost_spool_since_timestamp_seconds", "gauge",
                     "Since when deliveries go to the spool; 0 while they go to Kafka.",
                     "spoolingSinceSeconds"};

        figures_moment(to, &oldest, (uint64_t)spool_stats_oldest_ms(stats));
        figures_moment(to, &since, (uint64_t)atomic_load(&stats->since_ms));
}

/* Write the failures, and in /status the last one, unless a delivery was stored since. */
static void
put_errors(const struct spool_stats *stats, struct figures *to)
{
        static const struct figure errors = {"gatepost_spool_errors_total", "counter",
                                             "Failures of the spool, by error.", "errors"};
        int last = atomic_load(&stats->last_error);

        figures_head(to, &errors);
        figures_open(to, errors.member);
        for (size_t i = 0; i < SPOOL_N_ERRORS; i++)
                figures_sample(to, &errors,
                               FIGURE_LABELS("error", spool_stats_error_name((enum spool_error)i)),
                               atomic_load(&stats->errors[i]));
        figures_close(to);
        if (last == SPOOL_N_ERRORS) {
                figures_text(to, "lastError", NULL);
                return;
        }
        figures_open(to, "lastError");
        figures_text(to, "error", spool_stats_error_name((enum spool_error)last));
        figures_number(to, "timeSeconds", (int64_t)atomic_load(&stats->last_error_s));
        figures_close(to);
}

void
metrics_put_spool(const struct spool_stats *stats, struct figures *to)
{
        static const struct figure sync = {
            "gatepost_spool_sync_seconds", "histogram",
            "Time to write deliveries to the spool and to sync them, those of one sync together.",
            "syncSeconds"};

        figures_open(to, "spool");
        figures_text(to, "directory", stats->directory);
        if (to->json != NULL)
                json_flag(to->json, "inPlace", !atomic_load(&stats->is_displaced));
        put_counts(stats, to);
        put_moments(stats, to);
        put_errors(stats, to);
        figures_histogram(to, &sync, &stats->sync);
        figures_close(to);
}
