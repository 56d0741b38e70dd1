#include "metrics/metrics_state.h"

/*
 * The member `configuration` of /status: the objects that the configuration in use defines. What a reload
 * changes is of the newest configuration, the rest of the first one. It has no secrets, only their number.
 */

static void
put_listeners(const struct metrics_listener *first, struct figures *to)
{
        figures_open_list(to, "listeners");
        for (const struct metrics_listener *each = first; each != NULL; each = each->next) {
                figures_open(to, NULL);
                figures_text(to, "address", each->address);
                json_flag(to->json, "tls", each->has_tls);
                figures_text(to, "for", each->purpose);
                figures_close(to);
        }
        figures_close_list(to);
}

static void
put_source(const struct config_source *source, struct figures *to)
{
        figures_open(to, NULL);
        figures_text(to, "name", source->name);
        figures_text(to, "path", source->path);
        figures_text(to, "headerPrefix", source->header_prefix);
        figures_number(to, "secrets", (int64_t)source->n_keys);
        figures_number(to, "webhookIds", (int64_t)source->n_webhook_ids);
        figures_fraction(to, "toleranceSeconds", (double)source->tolerance_ms / 1000);
        json_flag(to->json, "replayGuard", source->replay_guard);
        figures_close(to);
}

static void
put_sources(const struct config *config, struct figures *to)
{
        figures_open_list(to, "sources");
        for (size_t i = 0; i < config->n_sources; i++)
                put_source(&config->sources[i], to);
        figures_close_list(to);
}

static void
put_topics(const struct metrics *metrics, struct figures *to)
{
        const struct topic_table *topics = metrics->newest->topics;

        figures_open(to, "topics");
        figures_text(to, "deliveries", metrics->config->deliveries_topic);
        figures_text(to, "quarantine", metrics->config->quarantine_topic);
        figures_open_list(to, "events");
        for (size_t i = 0; i < topic_table_size(topics); i++) {
                figures_open(to, NULL);
                figures_text(to, "kinds", topic_table_rule(topics, i)->pattern);
                figures_text(to, "topic", topic_table_rule(topics, i)->topic);
                figures_close(to);
        }
        figures_close_list(to);
        figures_close(to);
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

void
metrics_put_configuration(const struct metrics *metrics, struct figures *to)
{
        const struct config *newest = metrics->newest;

        if (to->json == NULL)
                return;
        figures_open(to, "configuration");
        figures_text(to, "file", newest->file);
        figures_number(to, "loadedSeconds", metrics->applied_s);
        put_refused_reload(metrics, to);
        figures_open_list(to, "awaitingRestart");
        for (size_t i = 0; i < newest->n_awaiting; i++)
                figures_text(to, NULL, newest->awaiting[i]);
        figures_close_list(to);
        put_listeners(metrics->listeners, to);
        put_sources(newest, to);
        put_topics(metrics, to);
        figures_fraction(to, "dedupWindowSeconds", (double)metrics->config->dedup_window_ms / 1000);
        figures_close(to);
}
