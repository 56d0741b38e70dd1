#include "cli/audit_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/mem.h"
#include "kafka/message.h"
#include "model/dedup.h"
#include "model/judge.h"
#include "model/output.h"

/* What deciding needs, as the router has it. */
struct decider {
        struct audit *audit;
        struct judge *judge;
        const struct event_rules **rules;
        struct dedup **dedups; /* one a partition */
        int fell_back;         /* timestamps did, by more than the tables remember */
};

/* The fingerprint of the record that must come of a delivery. */
static int
fingerprint(struct digest *digest, const struct output *published, const rd_kafka_message_t *message,
            uint8_t bytes[DIGEST_FINGERPRINT_SIZE])
{
        if (digest_begin(digest, published->topic, published->key, published->value) != 0)
                return -1;
        if (published->keeps_headers && message_digest_headers(message, digest) != 0)
                return -1;
        for (size_t i = 0; i < published->n_headers; i++) {
                if (digest_header(digest, published->headers[i].name, published->headers[i].value) != 0)
                        return -1;
        }
        return digest_end(digest, bytes);
}

/* Count what becomes of a delivery, in the first pass. */
static void
count(struct audit *audit, const struct record *record, int is_demanded)
{
        const struct audit_plan *plan = audit->plan;
        struct audit_partition *partition = &audit->partitions[record->partition];
        int64_t ms = record->timestamp_ms;

        partition->n_read++;
        if (ms < plan->since_ms)
                return;
        if (record->offset >= plan->committed[record->partition]) {
                if (partition->n_waiting++ == 0 || ms < partition->first_waiting_ms)
                        partition->first_waiting_ms = ms;
        } else if (is_demanded) {
                if (partition->n_checked++ == 0 || ms < partition->first_checked_ms)
                        partition->first_checked_ms = ms;
                if (ms > partition->last_checked_ms)
                        partition->last_checked_ms = ms;
        } else {
                if (audit_plan_judges(plan, record))
                        partition->n_forgotten++;
                else
                        partition->n_untold++;
                if (ms > partition->last_unchecked_ms)
                        partition->last_unchecked_ms = ms;
        }
}

static int
add(struct audit *audit, const struct record *record, const struct verdict *verdict,
    const rd_kafka_message_t *message)
{
        const struct audit_plan *plan = audit->plan;
        uint8_t bytes[DIGEST_FINGERPRINT_SIZE];
        struct tally_place place = {.partition = record->partition, .offset = record->offset};
        const struct audit_exception *exception;
        struct output published;
        int is_demanded, is_first = audit->n_passes == 0;

        if (!output_describe(record, verdict, plan->config->quarantine_topic, &published)) {
                if (is_first)
                        count(audit, record, audit_plan_judges(plan, record)); /* that nothing comes of it */
                return 0;
        }
        if (audit_find_exception(audit, record, &exception) != 0)
                return -1;
        place.topic = verdict->action == VERDICT_PUBLISH && exception == NULL
                          ? plan->of_rule[verdict->topic->index]
                          : plan->quarantine;
        is_demanded =
            audit_plan_demands(plan, record, place.topic, exception == NULL ? published.key : record->key);
        if (is_first) {
                count(audit, record, is_demanded);
                audit->topics[place.topic].n_demanded += (uint64_t)is_demanded;
                if (exception != NULL)
                        audit->n_excepted[exception->reason]++;
        }
        if (exception == NULL && fingerprint(audit->digest, &published, message, bytes) != 0)
                return -1;
        return tally_add(audit->tally, exception == NULL ? bytes : exception->fingerprint,
                         is_demanded ? SKETCH_REQUIRED : SKETCH_ALLOWED, &place);
}

static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct decider *decider = arg;
        struct dedup *dedup = decider->dedups[index];
        struct verdict verdict;
        struct record record;

        message_record(message, &record);
        if (!dedup_covers(dedup, record.timestamp_ms)) {
                (void)error_set(error,
                                "the timestamps of %s, partition %d, fall back at offset %" PRId64
                                ": a clock was wrong "
                                "there, and what came before can no longer be judged",
                                rd_kafka_topic_name(message->rkt), message->partition, message->offset);
                decider->fell_back = 1;
                return RANGE_FAIL;
        }
        if (judge_decide(decider->judge, dedup, &record, &verdict) != 0 ||
            add(decider->audit, &record, &verdict, message) != 0) {
                (void)error_set_openssl(error, "the record could not be decided");
                return RANGE_FAIL;
        }
        dedup_expire(dedup, record.timestamp_ms);
        progress_step(&decider->audit->progress);
        return RANGE_GO_ON;
}

static int
open_decider(struct decider *decider, struct audit *audit)
{
        const struct config *config = audit->plan->config;
        size_t n = audit->plan->n_deliveries;

        decider->audit = audit;
        decider->rules = mem_alloc(config->n_sources * sizeof(*decider->rules));
        decider->dedups = mem_alloc(n * sizeof(*decider->dedups));
        for (size_t i = 0; i < config->n_sources; i++)
                decider->rules[i] = &config->sources[i].rules;
        decider->judge = judge_new(decider->rules, config->n_sources, config->topics);
        if (decider->judge == NULL)
                return -1;
        for (size_t p = 0; p < n; p++) {
                decider->dedups[p] = dedup_new(config->dedup_window_ms, DEDUP_COMPLETE);
                if (decider->dedups[p] == NULL)
                        return -1;
        }
        return 0;
}

static void
close_decider(struct decider *decider)
{
        for (size_t p = 0; p < decider->audit->plan->n_deliveries; p++)
                dedup_free(decider->dedups[p]);
        free(decider->dedups);
        judge_free(decider->judge);
        free(decider->rules);
}

int
audit_expected(struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;
        enum range_result result = RANGE_FAILED;
        struct decider decider = {0};
        struct error error;

        audit_progress_begin(audit, "deliveries", plan->deliveries, plan->n_deliveries);
        if (open_decider(&decider, audit) == 0)
                result = range_read(plan->config, plan->bootstrap, plan->deliveries, plan->n_deliveries,
                                    on_delivery, &decider, &error);
        else
                (void)error_set_openssl(&error, "no judge of records");
        close_decider(&decider);
        progress_end(&audit->progress);
        if (decider.fell_back)
                return audit_plan_refuse(EX_DATAERR, error.text);
        return result == RANGE_DONE ? 0 : audit_plan_failed(result, &error);
}
