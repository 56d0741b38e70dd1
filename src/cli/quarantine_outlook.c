#include "cli/quarantine_outlook.h"

#include <stdlib.h>
#include <string.h>

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

int
outlook_find(struct outlook *outlook, const rd_kafka_message_t *message, struct releasing *releasing)
{
        char released[RELEASE_ID_SIZE];
        struct verdict verdict;
        struct record record;

        message_record(message, &record);
        (void)release_id_format(&releasing->record->id, released);
        record.released = (struct span){released, strlen(released)};
        record.replay_of = (struct span){NULL, 0};
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
