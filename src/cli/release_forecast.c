#include "cli/release_forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "dedup/dedup.h"
#include "kafka/message.h"
#include "model/judge.h"

struct release_forecaster {
        const struct config *config;
        const struct event_rules **rules;
        struct judge *judge;
        struct dedup
            *dedup; /* stays empty: each release has an identity of its own, so none is a duplicate */
};

struct release_forecaster *
release_forecaster_new(const struct config *config, struct error *error)
{
        struct release_forecaster *forecaster = mem_alloc(sizeof(*forecaster));

        forecaster->config = config;
        forecaster->rules = mem_alloc((config->n_sources + 1) * sizeof(const struct event_rules *));
        for (size_t i = 0; i < config->n_sources; i++)
                forecaster->rules[i] = &config->sources[i].rules;
        forecaster->judge = judge_new(forecaster->rules, config->n_sources, config->topics, NULL);
        forecaster->dedup = dedup_new(config->dedup_window_ms, DEDUP_COMPLETE);
        if (forecaster->judge != NULL && forecaster->dedup != NULL)
                return forecaster;
        (void)error_set_openssl(error, "records cannot be evaluated");
        release_forecaster_free(forecaster);
        return NULL;
}

void
release_forecaster_free(struct release_forecaster *forecaster)
{
        if (forecaster == NULL)
                return;
        judge_free(forecaster->judge);
        dedup_free(forecaster->dedup);
        free(forecaster->rules);
        free(forecaster);
}

static int
sign(const struct config *config, const struct record *record,
     char signature[RELEASE_FORECAST_SIGNATURE_SIZE])
{
        const struct config_source *source =
            config_find_source(config, record->source.data, record->source.len);

        signature[0] = '\0';
        if (source == NULL || record->key.len > JUDGE_TEXT_MAX)
                return 0;
        return reverification_sign_release(source->keys[0], record, clock_now_ms() / 1000, signature);
}

int
release_forecast_make(struct release_forecaster *forecaster, const rd_kafka_message_t *message,
                      const struct release_id *id, char signature[RELEASE_FORECAST_SIGNATURE_SIZE],
                      struct release_forecast *forecast)
{
        char released[RELEASE_ID_SIZE];
        struct verdict verdict;
        struct record record;

        message_record(message, &record);
        (void)release_id_format(id, released);
        record.timestamp_ms = clock_now_ms();
        record.released = (struct span){released, strlen(released)};
        record.replay_of = (struct span){NULL, 0};
        if (sign(forecaster->config, &record, signature) != 0)
                return -1;
        record.release_signature = (struct span){signature, strlen(signature)};
        if (judge_decide(forecaster->judge, forecaster->dedup, &record, &verdict) != 0)
                return -1;
        if (verdict.action == VERDICT_PUBLISH) {
                forecast->topic = verdict.topic->topic;
        } else if (verdict.action == VERDICT_QUARANTINE) {
                forecast->reason = judge_reason_name(verdict.reason);
                forecast->detail = mem_strdup(verdict.detail);
        }
        return 0;
}

void
release_forecast_clear(struct release_forecast *forecast)
{
        free(forecast->detail);
        *forecast = (struct release_forecast){0};
}

void
release_forecast_print(const struct release_forecast *forecast)
{
        if (forecast->topic != NULL) {
                printf(", to be published to %s", forecast->topic);
        } else if (forecast->reason != NULL) {
                printf(", but this configuration quarantines it again: %s, ", forecast->reason);
                text_print(stdout, forecast->detail, strlen(forecast->detail));
        }
}

void
release_forecast_put_json(struct json_writer *json, const struct release_forecast *forecast)
{
        json_member(json, "topic", forecast->topic);
        json_member(json, "comesBack", forecast->reason);
        if (forecast->detail == NULL)
                json_null(json, "comesBackDetail");
        else
                json_bytes(json, "comesBackDetail", forecast->detail, strlen(forecast->detail));
}

int
release_forecast_may_repeat(const char *reason)
{
        static const enum quarantine_reason all[] = {QUARANTINE_REPLAYED_SIGNATURE,
                                                     QUARANTINE_CONFLICTING_BODY, QUARANTINE_UNVERIFIED,
                                                     QUARANTINE_SPOOLED_TOO_LONG};

        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
                if (strcmp(reason, judge_reason_name(all[i])) == 0)
                        return 1;
        }
        return 0;
}
