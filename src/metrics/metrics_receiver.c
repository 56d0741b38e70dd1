#include "metrics/metrics_state.h"

/* What a receiver reports in /metrics and /status. */

static void
put_outcomes(const struct metrics_source *source, const struct figure *figure, struct figures *to)
{
        figures_open(to, source->name);
        for (size_t o = 0; o < OUTCOME_N; o++)
                figures_sample(to, figure,
                               FIGURE_LABELS("source", source->name, "outcome",
                                             metrics_outcome_name((enum metrics_outcome)o)),
                               metrics_read(&source->requests[o]));
        figures_close(to);
}

/* Requests to no source come last. */
static void
put_requests(const struct metrics *metrics, struct figures *to)
{
        static const struct figure requests = {
            "gatepost_requests_total", "counter",
            "Requests, by outcome and by source; the source is empty when the path belongs to none.",
            "requests"};
        const struct metrics_source *none = atomic_load(&metrics->sources);
        const struct metrics_source *each = atomic_load(&none->next);

        figures_head(to, &requests);
        figures_open(to, requests.member);
        for (; each != NULL; each = atomic_load(&each->next))
                put_outcomes(each, &requests, to);
        put_outcomes(none, &requests, to);
        figures_close(to);
}

/* When each source had its last accepted delivery; null: none since the start. */
static void
put_last_accepted(const struct metrics *metrics, struct figures *to)
{
        const struct metrics_source *each = atomic_load(&metrics->sources);

        figures_open(to, "lastAcceptedSeconds");
        while ((each = atomic_load(&each->next)) != NULL)
                figures_time(to, each->name, (int64_t)metrics_read(&each->accepted_s));
        figures_close(to);
}

static void
put_refusals(const struct metrics *metrics, struct figures *to)
{
        struct recent_event events[RECENT_EVENTS];
        size_t n = recent_read(&metrics->recent_refusals, events);

        figures_open_list(to, "refusals");
        for (size_t i = 0; i < n; i++) {
                char client[ADDRESS_TEXT_SIZE];

                figures_open(to, NULL);
                figures_number(to, "timeSeconds", events[i].time_s);
                figures_number(to, "count", (int64_t)events[i].count);
                figures_text(to, "source", events[i].source);
                figures_text(to, "outcome", events[i].outcome);
                figures_time(to, "status", events[i].status); /* null: closed before a request */
                figures_text(to, "client", address_format(&events[i].client, client));
                figures_text(to, "requestId", events[i].request_id);
                figures_text(to, "detail", events[i].detail);
                figures_close(to);
        }
        figures_close_list(to);
}

static void
put_connections(const struct metrics *metrics, struct figures *to)
{
        static const struct figure open = {"gatepost_connections_open", "gauge",
                                           "Open connections of the receiver.", NULL},
                                   accepted = {"gatepost_connections_accepted_total", "counter",
                                               "Accepted connections.", NULL},
                                   closed = {"gatepost_connections_closed_total", "counter",
                                             "Closed connections, by reason.", NULL},
                                   used = {"gatepost_in_flight_bytes", "gauge",
                                           "Bytes of the bodies of unanswered requests.", NULL},
                                   limit = {"gatepost_in_flight_limit_bytes", "gauge",
                                            "Limit of gatepost_in_flight_bytes: max_in_flight.", NULL};
        const struct connection_stats *connections = &metrics->connections;

        if (to->text == NULL)
                return;
        figures_count(to, &open, connection_stats_open(connections));
        figures_count(to, &accepted, atomic_load_explicit(&connections->accepted, memory_order_relaxed));
        figures_head(to, &closed);
        for (size_t i = 0; i < HTTP_N_ENDS; i++)
                figures_sample(to, &closed, FIGURE_LABELS("reason", http_end_name((enum http_end)i)),
                               atomic_load_explicit(&connections->ended[i], memory_order_relaxed));
        if (metrics->budget == NULL)
                return;
        figures_count(to, &used, memory_budget_used(metrics->budget));
        figures_count(to, &limit, memory_budget_size(metrics->budget));
}

/* A source whose secret is in the configuration file has no entry. */
static void
render_secrets(const struct config *config, struct figures *to)
{
        static const struct figure written = {"gatepost_secret_timestamp_seconds", "gauge",
                                              "When a secret_file was last modified, since the epoch.", NULL};

        figures_head(to, &written);
        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];

                for (size_t i = 0; i < source->n_secret_files; i++)
                        figures_sample(to, &written,
                                       FIGURE_LABELS("source", source->name, "file",
                                                     source->secret_files[i].path),
                                       (uint64_t)source->secret_files[i].written_s);
        }
}

void
metrics_put_receiver(const struct metrics *metrics, struct figures *to)
{
        static const struct figure expiry = {
            "gatepost_tls_certificate_expiry_timestamp_seconds", "gauge",
            "When the first certificate of the chain expires, since the epoch.", "certificateExpirySeconds"};

        put_requests(metrics, to);
        put_last_accepted(metrics, to);
        put_refusals(metrics, to);
        metrics_put_histogram(metrics, HISTOGRAM_VERIFY, to);
        metrics_put_histogram(metrics, HISTOGRAM_ACK, to);
        metrics_put_histogram(metrics, HISTOGRAM_STALE_AGE, to);
        put_connections(metrics, to);
        if (to->text != NULL)
                render_secrets(metrics->newest, to);
        if (metrics->certificate_end_s != 0)
                figures_count(to, &expiry, (uint64_t)metrics->certificate_end_s);
        if (metrics->spool != NULL)
                metrics_put_spool(metrics->spool, to);
}
