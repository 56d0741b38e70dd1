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

#define INIT_TIMEOUT_MS 2000   /* of one call, which the next one resumes */
#define INIT_PATIENCE_MS 30000 /* with one producer */
#define TOPIC_PAUSE_MS 1000

/*
 * Decide by the sources and topics of the newest configuration from now on; without memory, by those before. The judge stays:
 * its key is what the dedup tables were filled with.
 */
static void
take_newest(struct decider *decider)
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
        batch_renew(&decider->batch, newest);
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
                take_newest(decider);
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
                take_newest(decider);
        return decider->newest == NULL ? error_set_openssl(error, "no judge of records") : 0;
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
 * Kafka has not accepted a record of the open transaction, which cannot be committed now. Either that is about the record, or
 * about its topic; then the partition waits until the topic is available. An event that was refused becomes a stub in
 * quarantine; when that is refused as well, it is about the topic of quarantine.
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
        return result > 0 && clock_monotonic_ms() - decider->made_ms >= INIT_PATIENCE_MS ? -1 : result;
}

void
decider_note_membership(struct decider *decider, rd_kafka_t *consumer)
{
        if (decider->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(decider->group);
        decider->group = rd_kafka_consumer_group_metadata(consumer);
}

static void
tell(struct decider *decider, const struct record *record, const struct verdict *verdict)
{
        const struct config_source *source =
            config_find_source(decider->newest, record->source.data, record->source.len);

        decision_log_add(&decider->decisions, source == NULL ? "" : source->name, record, verdict);
}

/* Kafka does not accept what would be published of a record: put a stub of it into quarantine. */
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
begin(struct decider *decider, struct error *error)
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

/* Decide a record and do what was decided, in a transaction that is opened for it if none is. */
static int
decide(struct decider *decider, struct partition *partition, const struct record *record,
       const rd_kafka_message_t *message, struct error *error)
{
        struct verdict verdict;
        int result;

        if (!decider->is_open && begin(decider, error) != 0)
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
                tell(decider, record, &verdict);
        return result;
}

/* The log is not the one that was routed: the record before decide_from is another one, or missing. */
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

/* Only remember a record that was routed before. */
static enum decider_result
remember(struct decider *decider, struct partition *partition, const struct record *record,
         struct error *error)
{
        if (!partition_recognises(partition, record->offset, record->timestamp_ms))
                return diverge(partition, decider->config->deliveries_topic);
        if (judge_remember(decider->judge, partition->dedup, record) == 0)
                return DECIDER_TAKEN;
        (void)error_set_openssl(error, "the record could not be remembered");
        return DECIDER_FAILED;
}

/* Ask for the position again: what is known of the log may be wrong. */
static enum decider_result
look_again(struct partition *partition, const char *why)
{
        char quoted[LOG_QUOTED_SIZE];

        log_info("asking for the position again partition=%" PRId32 " offset=%" PRId64 " reason=%s",
                 partition->id, partition->next, log_quote(why, quoted));
        partition_unplace(partition, TROUBLE_NONE, NULL, 0, clock_monotonic_ms());
        return DECIDER_UNPLACED;
}

/*
 * The table knows records that were not committed, from a log that may since have been cut off before them: what is
 * accepted now would be taken for a repeat of what is gone.
 */
static enum decider_result
forget(struct partition *partition)
{
        partition_forget_open(partition, clock_monotonic_ms());
        return look_again(partition,
                          "the leader has changed or started again before a commit; filling the table anew");
}

/* A record comes from elsewhere than the one before it. Returns whether it may be taken all the same. */
static int
allows_change(struct partition *partition, const rd_kafka_message_t *message)
{
        int64_t timestamp_ms = rd_kafka_message_timestamp(message, NULL);

        if (partition_allows_change(partition, message->offset, timestamp_ms))
                return 1;
        (void)look_again(partition, "the leader has changed or started again");
        partition_note_change(partition, message->offset, timestamp_ms);
        return 0;
}

/* Take a record that is the next one of its partition, as far as can be said from its offset. */
static enum decider_result
take_next(struct decider *decider, struct partition *partition, const rd_kafka_message_t *message,
          struct error *error)
{
        enum decider_result result = DECIDER_TAKEN;
        struct record record;

        message_record(message, &record);
        if (!partition_confirms(partition, record.offset, record.timestamp_ms)) {
                partition_forget_table(partition, clock_monotonic_ms());
                return look_again(partition,
                                  "another router has committed, and the log is not the one that was "
                                  "read before; filling the table anew");
        }
        if (message->offset < partition->decide_from) {
                result = remember(decider, partition, &record, error);
        } else {
                if (partition->next < partition->decide_from && partition->routed_ms >= 0)
                        return diverge(partition, decider->config->deliveries_topic);
                if (!partition_can_judge(partition, record.timestamp_ms))
                        return look_again(partition,
                                          "the timestamp falls back behind what is remembered: was a "
                                          "broker's clock wrong? Restoring from an earlier time");
                if (decide(decider, partition, &record, message, error) != 0)
                        result = DECIDER_FAILED;
        }
        if (result == DECIDER_TAKEN)
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
                return DECIDER_TAKEN;
        if (!partition_expects(partition, message->offset, origin) && !allows_change(partition, message))
                return DECIDER_UNPLACED;
        if (partition->known_to > partition->decide_from && partition_open(partition) == 0 &&
            !consumer_origin_is(&partition->known_origin, origin))
                return forget(partition);
        if (message->offset < partition->scan_next)
                partition->scan_next = -1; /* read again from next, for another partition's sake */
        if (partition->scan_next >= 0 || !partition_accepts(partition, message->offset)) {
                partition_scan(partition, message->offset, clock_monotonic_ms());
                decider->is_scanning = 1;
                return DECIDER_TAKEN;
        }
        result = take_next(decider, partition, message, error);
        if (result == DECIDER_UNPLACED)
                return result;
        partition_note_origin(partition, origin);
        if (partition->known_to <= message->offset)
                partition->known_to = message->offset + 1; /* one that failed may be known, too */
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

/* Add what is to be committed. Returns -1 when memory fails. */
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
        int result = add_offsets(decider, offsets) != 0
                         ? error_set(error, "out of memory")
                         : transaction_commit(decider->transaction, decider->group, offsets, error);

        rd_kafka_topic_partition_list_destroy(offsets);
        if (result != 0)
                return -1;
        metrics_observe(decider->metrics, HISTOGRAM_COMMIT, (uint64_t)(clock_monotonic_ns() - began_ns), 1);
        decider->is_behind = decider_is_full(decider);
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

/* Exactly one record was refused: from now on its stub takes its place. With more than one the batch is halved until it is one. */
static void
note_refused(struct decider *decider)
{
        struct partition *partition =
            decider->n_refused == 1 ? partition_find(&decider->partitions, decider->refused.partition) : NULL;
        char quoted[LOG_QUOTED_SIZE];

        /*
         * One before it that is known and not committed yet stays so: the batch is halved until it is committed without this
         * one. One behind it comes later and is found again; kept, it would keep this one from ever being known.
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
