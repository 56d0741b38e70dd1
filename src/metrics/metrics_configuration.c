#include "metrics/metrics_state.h"
#include "metrics/status_writer.h"

/*
 * The member `configuration` of /status: the objects that the configuration in use defines. What a reload
 * changes is of the newest configuration, the rest of the first one. It has no secrets, only their number.
 */

static void
put_listeners(struct status_writer *writer)
{
        json_open_array(writer->json, "listeners");
        for (const struct metrics_listener *each = writer->metrics->listeners; each != NULL;
             each = each->next) {
                json_open_object(writer->json, NULL);
                status_writer_text(writer, "address", each->address);
                json_flag(writer->json, "tls", each->has_tls);
                status_writer_text(writer, "for", each->purpose);
                status_writer_text(writer, "openedBy", each->opened_by);
                json_close_object(writer->json);
        }
        json_close_array(writer->json);
}

static void
put_source(struct status_writer *writer, const struct config_source *source)
{
        json_open_object(writer->json, NULL);
        status_writer_text(writer, "name", source->name);
        status_writer_text(writer, "path", source->path);
        status_writer_text(writer, "headerPrefix", source->header_prefix);
        json_number(writer->json, "secrets", (int64_t)source->n_keys);
        status_writer_time(writer, "secretsReplacedSeconds", (uint64_t)source->replaced_s);
        json_number(writer->json, "webhookIds", (int64_t)source->n_webhook_ids);
        status_writer_fraction(writer, "toleranceSeconds", (double)source->tolerance_ms / 1000);
        json_flag(writer->json, "replayGuard", source->replay_guard);
        json_close_object(writer->json);
}

static void
put_sources(struct status_writer *writer)
{
        const struct config *config = writer->metrics->newest;

        json_open_array(writer->json, "sources");
        for (size_t i = 0; i < config->n_sources; i++)
                put_source(writer, &config->sources[i]);
        json_close_array(writer->json);
}

static void
put_topics(struct status_writer *writer)
{
        const struct topic_table *topics = writer->metrics->newest->topics;

        json_open_object(writer->json, "topics");
        status_writer_text(writer, "deliveries", writer->metrics->config->deliveries_topic);
        status_writer_text(writer, "quarantine", writer->metrics->config->quarantine_topic);
        json_open_array(writer->json, "events");
        for (size_t i = 0; i < topic_table_size(topics); i++) {
                json_open_object(writer->json, NULL);
                status_writer_text(writer, "kinds", topic_table_rule(topics, i)->pattern);
                status_writer_text(writer, "topic", topic_table_rule(topics, i)->topic);
                json_close_object(writer->json);
        }
        json_close_array(writer->json);
        json_close_object(writer->json);
}

static void
put_stat(struct status_writer *writer, const struct stat *st)
{
        json_number(writer->json, "inode", (int64_t)st->st_ino);
        json_number(writer->json, "modifiedSeconds", (int64_t)st->st_mtim.tv_sec);
        json_number(writer->json, "modifiedNanoseconds", (int64_t)st->st_mtim.tv_nsec);
        json_number(writer->json, "changedSeconds", (int64_t)st->st_ctim.tv_sec);
        json_number(writer->json, "changedNanoseconds", (int64_t)st->st_ctim.tv_nsec);
}

static void
put_file(struct status_writer *writer, const struct config_file *file)
{
        json_open_object(writer->json, NULL);
        status_writer_text(writer, "path", file->path);
        put_stat(writer, &file->st);
        status_writer_text(writer, "readAt", file->is_of_kafka ? "start" : "reload");
        json_close_object(writer->json);
}

/*
 * Inode and times only: a digest of the contents would let a reader of /status guess a weak secret,
 * and the size of its file is nobody's business. The file itself comes first.
 */
static void
put_files(struct status_writer *writer)
{
        const struct config *newest = writer->metrics->newest, *first = writer->metrics->config;

        json_open_array(writer->json, "files");
        for (size_t i = 0; i < newest->n_files; i++) {
                if (!newest->files[i].is_of_kafka)
                        put_file(writer, &newest->files[i]);
        }
        for (size_t i = 0; i < first->n_files; i++) {
                if (first->files[i].is_of_kafka)
                        put_file(writer, &first->files[i]);
        }
        json_close_array(writer->json);
}

static void
put_refused_reload(struct status_writer *writer)
{
        const struct refused_reload *refused = &writer->metrics->refused_reload;

        if (refused->time_s == 0) {
                json_null(writer->json, "refusedReload");
                return;
        }
        json_open_object(writer->json, "refusedReload");
        json_number(writer->json, "timeSeconds", refused->time_s);
        status_writer_text(writer, "reason", refused->error.text);
        json_flag(writer->json, "needsRestart", refused->needs_restart);
        json_flag(writer->json, "hasErrors", refused->has_errors);
        put_stat(writer, &refused->st);
        json_close_object(writer->json);
}

void
metrics_configuration(struct status_writer *writer)
{
        const struct metrics *metrics = writer->metrics;

        json_open_object(writer->json, "configuration");
        status_writer_text(writer, "file", metrics->newest->file);
        json_number(writer->json, "loadedSeconds", metrics->applied_s);
        put_refused_reload(writer);
        json_open_array(writer->json, "awaitingRestart");
        for (size_t i = 0; i < metrics->newest->n_awaiting; i++)
                status_writer_text(writer, NULL, metrics->newest->awaiting[i]);
        json_close_array(writer->json);
        status_writer_text(writer, "bootstrapServers", config_brokers(metrics->config));
        put_files(writer);
        put_listeners(writer);
        put_sources(writer);
        put_topics(writer);
        status_writer_fraction(writer, "dedupWindowSeconds", (double)metrics->config->dedup_window_ms / 1000);
        json_close_object(writer->json);
}
