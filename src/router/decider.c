#include "router/decider.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/message.h"
#include "router/position.h"

#define INIT_TIMEOUT_MS 2000 /* for one call; the next call resumes it */
#define INIT_LIMIT_MS 30000  /* for one producer */
#define TOPIC_PAUSE_MS 1000

/* Apply the newest sources and topics, if memory allows. The judge stays: the dedup tables need its key. */
static void
apply_newest(struct decider *decider)
{
        const struct config *newest = current_hold(decider->current);
        const struct event_rules **rules = calloc(newest->n_sources, sizeof(*rules));

        if (rules == NULL) {
                config_free(newest);
                return;
        }
        for (size_t i = 0; i < newest->n_sources; i++)
                rules[i] = &newest->sources[i].rules;
        judge_set_rules(decider->judge, rules, newest->n_sources, newest->topics);
        free(decider->rules);
        config_free(decider->newest);
        decider->rules = rules;
        decider->newest = newest;
        batch_reload(&decider->batch, newest);
        if (decider->transaction != NULL)
                transaction_know_topics(decider->transaction, newest);
        for (size_t i = 0; i < decider->partitions.n; i++) {
                partition_forget_topic(decider->partitions.items[i]);
                partition_forget_open(decider->partitions.items[i], clock_monotonic_ms());
        }
}

int
decider_is_outdated(const struct decider *decider)
{
        return !current_is(decider->current, decider->newest);
}

void
decider_reload(struct decider *decider)
{
        if (!decider->is_open && decider_is_outdated(decider))
                apply_newest(decider);
}

int
decider_open(struct decider *decider, struct current *current, const char *bootstrap, struct metrics *metrics,
             struct error *error)
{
        memset(decider, 0, sizeof(*decider));
        decider->current = current;
        decider->config = current_first(current);
        decider->bootstrap = bootstrap;
        decider->metrics = metrics;
        batch_init(&decider->batch, decider->config);
        decider->judge = judge_new(NULL, 0, NULL);
        if (decider->judge != NULL)
                apply_newest(decider);
        return decider->newest == NULL ? error_set_openssl(error, "cannot create the judge of records") : 0;
}

void
decider_close(struct decider *decider)
{
        if (decider->transaction != NULL)
                transaction_abort(decider->transaction);
        transaction_free(decider->transaction);
        if (decider->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(decider->group);
        partition_clear(&decider->partitions);
        judge_free(decider->judge);
        batch_free(&decider->batch);
        decision_log_clear(&decider->decisions);
        free(decider->rules);
        config_free(decider->newest);
}

/*
 * Kafka has not accepted a record of the open transaction, which can no longer be committed. The cause is the
 * record, which becomes a stub in quarantine, or its topic: then the partition waits until the topic is
 * available. A refused stub means that the quarantine topic is the cause.
 */
static void
on_failure(const struct transaction_failure *failure, void *arg)
{
        struct decider *decider = arg;
        const struct batch_origin *origin = batch_origin(&decider->batch, failure->tag);
        struct partition *partition =
            origin == NULL ? NULL : partition_find(&decider->partitions, origin->partition);

        if (partition == NULL)
                return;
        if (failure->is_final &&
            !partition_is_unpublishable(partition, origin->offset, origin->timestamp_ms)) {
                decider->n_refused++;
                decider->refused = *origin;
                (void)error_set(&decider->refused_why, "%s: %s", failure->topic, failure->reason);
        } else {
                (void)snprintf(partition->topic, sizeof(partition->topic), "%s", failure->topic);
                (void)error_set(&partition->reason, "%s: %s", failure->topic, failure->reason);
        }
}

int
decider_prepare(struct decider *decider, struct error *error)
{
        int result;

        if (decider->is_ready)
                return 0;
        if (decider->transaction == NULL) {
                decider->transaction =
                    transaction_new(decider->config, decider->bootstrap, on_failure, decider, error);
                if (decider->transaction == NULL)
                        return -1;
                transaction_know_topics(decider->transaction, decider->newest);
                decider->made_ms = clock_monotonic_ms();
        }
        result = transaction_init(decider->transaction, INIT_TIMEOUT_MS, error);
        decider->is_ready = result == 0;
        return result > 0 && clock_monotonic_ms() - decider->made_ms >= INIT_LIMIT_MS ? -1 : result;
}

void
decider_note_membership(struct decider *decider, rd_kafka_t *consumer)
{
        if (decider->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(decider->group);
        decider->group = rd_kafka_consumer_group_metadata(consumer);
}

static void
log_decision(struct decider *decider, const struct record *record, const struct verdict *verdict)
{
        const struct config_source *source =
            config_find_source(decider->newest, record->source.data, record->source.len);

        decision_log_add(&decider->decisions, source == NULL ? "" : source->name, record, verdict);
}

/* Kafka does not accept the record that would be published: put a stub into quarantine instead. */
static void
replace_by_stub(struct verdict *verdict, const char *why)
{
        if (verdict->action == VERDICT_DROP)
                return;
        verdict->action = VERDICT_QUARANTINE;
        verdict->reason = QUARANTINE_UNPUBLISHABLE;
        (void)snprintf(verdict->detail, sizeof(verdict->detail), "%.*s", DECODE_DETAIL_SIZE - 1, why);
}

static int
begin_transaction(struct decider *decider, struct error *error)
{
        crash_point("before-decision");
        if (!decider->is_behind)
                transaction_settle(decider->transaction);
        if (transaction_begin(decider->transaction, error) != 0)
                return -1;
        decider->is_open = 1;
        decider->n_refused = 0;
        return 0;
}

/* Decide a record and carry out the verdict, in the open transaction or a new one. */
static int
decide(struct decider *decider, struct partition *partition, const struct record *record,
       const rd_kafka_message_t *message, struct error *error)
{
        struct verdict verdict;
        int result;

        if (!decider->is_open && begin_transaction(decider, error) != 0)
                return -1;
        if (judge_decide(decider->judge, partition->dedup, record, &verdict) != 0)
                return error_set_openssl(error, "the record could not be decided");
        if (partition_is_unpublishable(partition, record->offset, record->timestamp_ms))
                replace_by_stub(&verdict, partition->unpublishable_why.text);
        else if (transaction_is_too_large(record->key.len + record->body.len))
                replace_by_stub(&verdict, "it is larger than any broker accepts");
        result = batch_add(&decider->batch, decider->newest, decider->transaction, record, message, &verdict,
                           error);
        crash_point("after-produce");
        if (result == 0)
                log_decision(decider, record, &verdict);
        return result;
}

/* The log is not the routed one: the record before decide_from differs, or is missing. */
static enum decider_result
diverge(struct partition *partition, const char *topic)
{
        struct error reason;

        (void)error_set(&reason,
                        "partition %d of %s has another record at offset %" PRId64
                        " than the one that was routed",
                        partition->id, topic, partition->decide_from - 1);
        partition->diverged_at = partition->decide_from;
        partition_unplace(partition, TROUBLE_OTHER_LOG, reason.text, 0, clock_monotonic_ms());
        return DECIDER_UNPLACED;
}

/* Add a record that was routed before to the dedup table. */
static enum decider_result
remember(struct decider *decider, struct partition *partition, const struct record *record,
         struct error *error)
{
        if (!partition_recognises(partition, record->offset, record->timestamp_ms))
                return diverge(partition, decider->config->deliveries_topic);
        if (judge_remember(decider->judge, partition->dedup, record) == 0)
                return DECIDER_DONE;
        (void)error_set_openssl(error, "the record could not be remembered");
        return DECIDER_FAILED;
}

/* Ask for the position again: the known state of the log may be wrong. */
static enum decider_result
ask_again(struct partition *partition, const char *why)
{
        char quoted[LOG_QUOTED_SIZE];

        log_info("asking for the position again partition=%" PRId32 " offset=%" PRId64 " reason=%s",
                 partition->id, partition->next, log_quote(why, quoted));
        partition_unplace(partition, TROUBLE_NONE, NULL, 0, clock_monotonic_ms());
        return DECIDER_UNPLACED;
}

/*
 * The dedup table contains uncommitted records of a log that may have been truncated before them: new
 * deliveries would be mistaken for repeats of lost ones.
 */
static enum decider_result
forget(struct partition *partition)
{
        partition_forget_open(partition, clock_monotonic_ms());
        return ask_again(partition,
                         "the leader has changed or restarted before a commit; restoring the dedup table");
}

/* A record comes from another origin than its predecessor. Returns whether it may be processed. */
static int
allows_change(struct partition *partition, const rd_kafka_message_t *message)
{
        int64_t timestamp_ms = rd_kafka_message_timestamp(message, NULL);

        if (partition_allows_change(partition, message->offset, timestamp_ms))
                return 1;
        (void)ask_again(partition, "the leader has changed or restarted");
        partition_note_change(partition, message->offset, timestamp_ms);
        return 0;
}

/* Process a record that is the next one of its partition, judging by its offset. */
static enum decider_result
take_next(struct decider *decider, struct partition *partition, const rd_kafka_message_t *message,
          struct error *error)
{
        enum decider_result result = DECIDER_DONE;
        struct record record;

        message_record(message, &record);
        if (!partition_confirms(partition, record.offset, record.timestamp_ms)) {
                partition_forget_table(partition, clock_monotonic_ms());
                return ask_again(partition,
                                 "another router has committed to another log; restoring the table");
        }
        if (message->offset < partition->decide_from) {
                result = remember(decider, partition, &record, error);
        } else {
                if (partition->next < partition->decide_from && partition->routed_ms >= 0)
                        return diverge(partition, decider->config->deliveries_topic);
                if (!partition_can_judge(partition, record.timestamp_ms))
                        return ask_again(partition,
                                         "timestamp before the dedup table; was a broker's clock wrong?");
                if (decide(decider, partition, &record, message, error) != 0)
                        result = DECIDER_FAILED;
        }
        if (result == DECIDER_DONE)
                partition_advance(partition, message->offset, record.timestamp_ms);
        return result;
}

enum decider_result
decider_take(struct decider *decider, const rd_kafka_message_t *message, const struct consumer_origin *origin,
             struct error *error)
{
        struct partition *partition = partition_find(&decider->partitions, message->partition);
        enum decider_result result;

        if (partition == NULL || partition->stage != PARTITION_PLACED || message->offset < partition->next)
                return DECIDER_DONE;
        if (!partition_expects(partition, message->offset, origin) && !allows_change(partition, message))
                return DECIDER_UNPLACED;
        if (partition->known_to > partition->decide_from && partition_open(partition) == 0 &&
            !consumer_origin_is(&partition->known_origin, origin))
                return forget(partition);
        if (message->offset < partition->scan_next)
                partition->scan_next = -1; /* read again from next because another partition was */
        if (partition->scan_next >= 0 || !partition_accepts(partition, message->offset)) {
                partition_scan(partition, message->offset, clock_monotonic_ms());
                decider->is_scanning = 1;
                return DECIDER_DONE;
        }
        result = take_next(decider, partition, message, error);
        if (result == DECIDER_UNPLACED)
                return result;
        partition_note_origin(partition, origin);
        if (partition->known_to <= message->offset)
                partition->known_to = message->offset + 1; /* even a failed record may be in the table */
        return result;
}

void
decider_note_end(struct decider *decider, int32_t id, int64_t end)
{
        struct partition *partition = partition_find(&decider->partitions, id);

        if (partition != NULL)
                partition_note_end(partition, end);
}

int
decider_is_full(const struct decider *decider)
{
        return decider->is_open && batch_is_full(&decider->batch, decider->newest);
}

static void
drop_transaction(struct decider *decider)
{
        transaction_free(decider->transaction);
        decider->transaction = NULL;
        decider->is_ready = 0;
}

/* Collect the offsets to commit. Returns -1 when memory fails. */
static int
add_offsets(struct decider *decider, rd_kafka_topic_partition_list_t *offsets)
{
        for (size_t i = 0; i < decider->partitions.n; i++) {
                struct partition *partition = decider->partitions.items[i];

                if (partition_open(partition) == 0)
                        continue;
                if (position_add_offset(offsets, decider->config->deliveries_topic, partition) != 0)
                        return -1;
                partition_try(partition);
        }
        return 0;
}

int
decider_commit(struct decider *decider, struct error *error)
{
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(8);
        int64_t began_ns = clock_monotonic_ns();
        int is_full = decider_is_full(decider); /* now: the commit's own time does not count */
        int result = add_offsets(decider, offsets) != 0
                         ? error_set(error, "out of memory")
                         : transaction_commit(decider->transaction, decider->group, offsets, error);

        rd_kafka_topic_partition_list_destroy(offsets);
        if (result != 0)
                return -1;
        metrics_observe(decider->metrics, HISTOGRAM_COMMIT, (uint64_t)(clock_monotonic_ns() - began_ns), 1);
        decider->is_behind = is_full;
        decider->is_open = 0;
        for (size_t i = 0; i < decider->partitions.n; i++)
                partition_committed(decider->partitions.items[i]);
        batch_count(&decider->batch, decider->newest, decider->metrics);
        batch_reset(&decider->batch);
        batch_grow(&decider->batch, decider->newest);
        if (transaction_is_tainted(decider->transaction)) {
                log_info("committed, but requests went unanswered; replacing the producer");
                drop_transaction(decider);
        }
        return 0;
}

int
decider_is_unfenced(const struct decider *decider)
{
        return decider->transaction != NULL && transaction_is_unfenced(decider->transaction);
}

/*
 * If only one record was refused, use its stub from now on; with several, the batch is halved until it is
 * one.
 */
static void
note_refused(struct decider *decider)
{
        struct partition *partition =
            decider->n_refused == 1 ? partition_find(&decider->partitions, decider->refused.partition) : NULL;
        char quoted[LOG_QUOTED_SIZE];

        /*
         * Keep an earlier unpublishable record that is not committed yet: the batch is halved until it is
         * committed without this one. A later one may be replaced, since it will be found again.
         */
        if (partition == NULL || (partition->unpublishable >= partition->decide_from &&
                                  partition->unpublishable < decider->refused.offset))
                return;
        partition->unpublishable = decider->refused.offset;
        partition->unpublishable_ms = decider->refused.timestamp_ms;
        partition->unpublishable_why = decider->refused_why;
        log_error("Kafka refuses a record; putting a stub of it into quarantine partition=%" PRId32
                  " offset=%" PRId64 " reason=%s",
                  partition->id, partition->unpublishable, log_quote(decider->refused_why.text, quoted));
}

void
decider_abandon(struct decider *decider)
{
        int64_t now_ms = clock_monotonic_ms();

        if (decider->is_open) {
                metrics_count_transaction(decider->metrics, 0);
                transaction_learn(decider->transaction);
                note_refused(decider);
                batch_shrink(&decider->batch);
        }
        drop_transaction(decider);
        for (size_t i = 0; i < decider->partitions.n; i++) {
                struct partition *partition = decider->partitions.items[i];

                partition_rewind(partition);
                if (partition->topic[0] != '\0' && partition->stage == PARTITION_PLACED)
                        partition_unplace(partition, TROUBLE_TOPIC, partition->reason.text, TOPIC_PAUSE_MS,
                                          now_ms);
                else if (partition->trouble == TROUBLE_NONE || partition->stage == PARTITION_PLACED)
                        partition_unplace(partition, TROUBLE_NONE, NULL, 0, now_ms);
        }
        decider->is_open = 0;
        batch_reset(&decider->batch);
}
