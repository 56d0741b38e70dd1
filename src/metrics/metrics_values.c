#include "metrics/metrics_state.h"

/* The figures that have one value, and the histograms, by their names in /metrics and /status. */

static const struct figure values[METRICS_N_VALUES] = {
    [METRICS_KAFKA_REACHABLE] = {"gatepost_kafka_reachable", "gauge",
                                 "1 when Kafka answers and the topics are as required.", "kafkaReachable"},
    [METRICS_MISCONFIGURED] = {"gatepost_topics_misconfigured", "gauge",
                               "Topics that do not have the required settings.", "misconfiguredTopics"},
    [METRICS_TESTS] = {"gatepost_test_deliveries_total", "counter",
                       "Test deliveries of gatepost doctor, dropped.", "testDeliveries"},
    [METRICS_LAG] = {"gatepost_router_lag_records", "gauge",
                     "Records not routed yet, of the partitions of this router.", "lagRecords"},
    [METRICS_OLDEST_MS] =
        {"gatepost_router_oldest_record_timestamp_seconds", "gauge",
         "Since when the oldest record not routed yet can have waited; 0 when there is none.",
         "oldestRecordSeconds"},
    [METRICS_REMEMBERED_IDS] = {"gatepost_remembered_ids", "gauge", "Delivery-ids in the dedup tables.",
                                "rememberedIds"},
    [METRICS_STATE_FILES] = {"gatepost_state_files", "gauge", "Files of the dedup tables.", "files"},
    [METRICS_STATE_BYTES] = {"gatepost_state_bytes", "gauge", "Size of these files.", "bytes"},
    [METRICS_STATE_ERRORS] = {"gatepost_state_errors_total", "counter", "Failures to write these files.",
                              "errors"},
    [METRICS_DELETED] = {"gatepost_deleted_before_routing_total", "counter",
                         "Records that retention deleted before they were routed.", "deletedBeforeRouting"},
    [METRICS_TRUNCATIONS] = {"gatepost_log_truncations_total", "counter",
                             "Times that Kafka lost records that had been routed.", "logTruncations"},
    [METRICS_PARTITIONS_ADDED] =
        {"gatepost_partitions_added_total", "counter",
         "Partitions that were added to deliveries: a repeat may be published again.", "partitionsAdded"},
};

static const struct figure histograms[HISTOGRAM_N] = {
    [HISTOGRAM_ACK] = {"gatepost_ack_seconds", "histogram",
                       "Time from a complete request to its answer, of accepted deliveries.", "ackSeconds"},
    [HISTOGRAM_VERIFY] = {"gatepost_verify_seconds", "histogram", "Time to verify a signature.",
                          "verifySeconds"},
    [HISTOGRAM_BATCH_RECORDS] = {"gatepost_batch_records", "histogram", "Records in a committed transaction.",
                                 "batchRecords"},
    [HISTOGRAM_COMMIT] = {"gatepost_commit_seconds", "histogram", "Time to commit a transaction.",
                          "commitSeconds"},
    [HISTOGRAM_DELIVERY] = {"gatepost_delivery_seconds", "histogram",
                            "Time from the reception of a delivery to the commit that publishes its event.",
                            "deliverySeconds"},
    [HISTOGRAM_STALE_AGE] = {"gatepost_stale_genuine_age_seconds", "histogram",
                             "Age of genuine deliveries that were refused as stale.", NULL},
};

/* In /status, a loss has the time of the last one as well. */
static void
put_loss(const struct metrics *metrics, enum metrics_value which, struct figures *to)
{
        const struct figure *figure = &values[which];

        if (to->json == NULL) {
                figures_count(to, figure, metrics_get(metrics, which));
                return;
        }
        figures_open(to, figure->member);
        figures_number(to, "count", (int64_t)metrics_get(metrics, which));
        figures_time(to, "timeSeconds", (int64_t)metrics_read(&metrics->times_s[which]));
        figures_close(to);
}

void
metrics_put_value(const struct metrics *metrics, enum metrics_value which, struct figures *to)
{
        if (which >= METRICS_DELETED)
                put_loss(metrics, which, to);
        else if (which == METRICS_OLDEST_MS)
                figures_moment(to, &values[which], metrics_get(metrics, which));
        else if (which == METRICS_KAFKA_REACHABLE)
                figures_flag(to, &values[which], metrics_get(metrics, which) != 0);
        else
                figures_count(to, &values[which], metrics_get(metrics, which));
}

void
metrics_put_histogram(const struct metrics *metrics, enum metrics_histogram which, struct figures *to)
{
        figures_histogram(to, &histograms[which], &metrics->histograms[which]);
}
