#include "cli/quarantine_outlook.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/message.h"
#include "model/judge.h"

struct outlook {
        const struct event_rules **rules;
        struct judge *judge;
        struct dedup *dedup;
};

struct outlook *
outlook_new(const struct config *config)
{
        struct outlook *outlook = mem_alloc(sizeof(*outlook));

        outlook->rules = mem_alloc((config->n_sources + 1) * sizeof(const struct event_rules *));
        for (size_t i = 0; i < config->n_sources; i++)
                outlook->rules[i] = &config->sources[i].rules;
        outlook->judge = judge_new(outlook->rules, config->n_sources, config->topics);
        outlook->dedup = dedup_new(config->dedup_window_ms, DEDUP_COMPLETE);
        if (outlook->judge == NULL || outlook->dedup == NULL) {
                outlook_free(outlook);
                return NULL;
        }
        return outlook;
}

void
outlook_free(struct outlook *outlook)
{
        if (outlook == NULL)
                return;
        judge_free(outlook->judge);
        dedup_free(outlook->dedup);
        free(outlook->rules);
        free(outlook);
}

/* The record that is appended. */
static void
describe(const rd_kafka_message_t *message, const struct release_headers *headers, struct record *record)
{
        message_record(message, record);
        record->timestamp_ms = clock_now_ms();
        record->released = (struct span){headers->released, strlen(headers->released)};
        record->release_signature = (struct span){headers->signature, strlen(headers->signature)};
        record->replay_of = (struct span){NULL, 0};
}

int
outlook_sign(const struct config *config, const rd_kafka_message_t *message, const struct release_id *id,
             struct release_headers *headers)
{
        const struct config_source *source;
        struct record record;

        (void)release_id_format(id, headers->released);
        headers->signature[0] = '\0';
        describe(message, headers, &record);
        source = config_find_source(config, record.source.data, record.source.len);
        if (source == NULL || record.key.len > JUDGE_TEXT_MAX)
                return 0;
        return reverification_sign_release(source->keys[0], &record, clock_now_ms() / 1000,
                                           headers->signature);
}

int
outlook_find(struct outlook *outlook, const rd_kafka_message_t *message,
             const struct release_headers *headers, struct releasing *releasing)
{
        struct verdict verdict;
        struct record record;

        describe(message, headers, &record);
        /* Each has an identity of its own, so that none is taken for a repeat of another. */
        if (judge_decide(outlook->judge, outlook->dedup, &record, &verdict) != 0)
                return -1;
        if (verdict.action == VERDICT_PUBLISH) {
                releasing->topic = verdict.topic->topic;
        } else if (verdict.action == VERDICT_QUARANTINE) {
                releasing->quarantine_reason = judge_reason_name(verdict.reason);
                releasing->quarantine_detail = mem_strdup(verdict.detail);
        }
        return 0;
}
