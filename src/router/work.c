#include "router/work.h"

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
take_newest(struct work *work)
{
        const struct config *newest = current_hold(work->current);
        const struct event_rules **rules = calloc(newest->n_sources, sizeof(*rules));

        if (rules == NULL) {
                config_free(newest);
                return;
        }
        for (size_t i = 0; i < newest->n_sources; i++)
                rules[i] = &newest->sources[i].rules;
        judge_set_rules(work->judge, rules, newest->n_sources, newest->topics);
        free(work->rules);
        config_free(work->newest);
        work->rules = rules;
        work->newest = newest;
        batch_renew(&work->batch, newest);
        if (work->transaction != NULL)
                transaction_know_topics(work->transaction, newest);
        for (size_t i = 0; i < work->partitions.n; i++) {
                partition_forget_topic(work->partitions.items[i]);
                partition_forget_open(work->partitions.items[i], clock_monotonic_ms());
        }
}

int
work_is_outdated(const struct work *work)
{
        return !current_is(work->current, work->newest);
}

void
work_renew(struct work *work)
{
        if (!work->is_open && work_is_outdated(work))
                take_newest(work);
}

int
work_open(struct work *work, struct current *current, const char *bootstrap, struct metrics *metrics,
          struct error *error)
{
        memset(work, 0, sizeof(*work));
        work->current = current;
        work->config = current_first(current);
        work->bootstrap = bootstrap;
        work->metrics = metrics;
        batch_init(&work->batch, work->config);
        work->judge = judge_new(NULL, 0, NULL);
        if (work->judge != NULL)
                take_newest(work);
        return work->newest == NULL ? error_set_openssl(error, "no judge of records") : 0;
}

void
work_close(struct work *work)
{
        if (work->transaction != NULL)
                transaction_abort(work->transaction);
        transaction_free(work->transaction);
        if (work->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(work->group);
        partition_clear(&work->partitions);
        judge_free(work->judge);
        batch_free(&work->batch);
        trail_clear(&work->trail);
        free(work->rules);
        config_free(work->newest);
}

/*
 * Kafka has not accepted a record of the open transaction, which cannot be committed now. Either that is about the record, or
 * about its topic; then the partition waits until the topic is available. An event that was refused becomes a stub in
 * quarantine; when that is refused as well, it is about the topic of quarantine.
 */
static void
on_failure(const struct transaction_failure *failure, void *arg)
{
        struct work *work = arg;
        const struct batch_origin *origin = batch_origin(&work->batch, failure->tag);
        struct partition *partition =
            origin == NULL ? NULL : partition_find(&work->partitions, origin->partition);

        if (partition == NULL)
                return;
        if (failure->is_final &&
            !partition_is_unpublishable(partition, origin->offset, origin->timestamp_ms)) {
                work->n_refused++;
                work->refused = *origin;
                (void)error_set(&work->refused_why, "%s: %s", failure->topic, failure->reason);
        } else {
                (void)snprintf(partition->topic, sizeof(partition->topic), "%s", failure->topic);
                (void)error_set(&partition->reason, "%s: %s", failure->topic, failure->reason);
        }
}

int
work_prepare(struct work *work, struct error *error)
{
        int result;

        if (work->is_ready)
                return 0;
        if (work->transaction == NULL) {
                work->transaction = transaction_new(work->config, work->bootstrap, on_failure, work, error);
                if (work->transaction == NULL)
                        return -1;
                transaction_know_topics(work->transaction, work->newest);
                work->made_ms = clock_monotonic_ms();
        }
        result = transaction_init(work->transaction, INIT_TIMEOUT_MS, error);
        work->is_ready = result == 0;
        return result > 0 && clock_monotonic_ms() - work->made_ms >= INIT_PATIENCE_MS ? -1 : result;
}

void
work_join(struct work *work, rd_kafka_t *consumer)
{
        if (work->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(work->group);
        work->group = rd_kafka_consumer_group_metadata(consumer);
}

static void
tell(struct work *work, const struct record *record, const struct verdict *verdict)
{
        const struct config_source *source =
            config_find_source(work->newest, record->source.data, record->source.len);

        trail_tell(&work->trail, source == NULL ? "" : source->name, record, verdict);
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
begin(struct work *work, struct error *error)
{
        crash_point("before-decision");
        if (!work->is_behind)
                transaction_settle(work->transaction);
        if (transaction_begin(work->transaction, error) != 0)
                return -1;
        work->is_open = 1;
        work->n_refused = 0;
        return 0;
}

/* Decide a record and do what was decided, in a transaction that is opened for it if none is. */
static int
decide(struct work *work, struct partition *partition, const struct record *record,
       const rd_kafka_message_t *message, struct error *error)
{
        struct verdict verdict;
        int result;

        if (!work->is_open && begin(work, error) != 0)
                return -1;
        if (judge_decide(work->judge, partition->dedup, record, &verdict) != 0)
                return error_set_openssl(error, "the record could not be decided");
        if (partition_is_unpublishable(partition, record->offset, record->timestamp_ms))
                replace_by_stub(&verdict, partition->unpublishable_why.text);
        else if (transaction_is_too_large(record->key.len + record->body.len))
                replace_by_stub(&verdict, "it is larger than any broker accepts");
        result = batch_add(&work->batch, work->newest, work->transaction, record, message, &verdict, error);
        crash_point("after-produce");
        if (result == 0)
                tell(work, record, &verdict);
        return result;
}

/* The log is not the one that was routed: the record before decide_from is another one, or missing. */
static enum work_result
diverge(struct partition *partition, const char *topic)
{
        struct error reason;

        (void)error_set(&reason,
                        "partition %d of %s has another record at offset %" PRId64
                        " than the one that was routed",
                        partition->id, topic, partition->decide_from - 1);
        partition->diverged_at = partition->decide_from;
        partition_unplace(partition, TROUBLE_OTHER_LOG, reason.text, 0, clock_monotonic_ms());
        return WORK_UNPLACED;
}

/* Only remember a record that was routed before. */
static enum work_result
remember(struct work *work, struct partition *partition, const struct record *record, struct error *error)
{
        if (!partition_recognises(partition, record->offset, record->timestamp_ms))
                return diverge(partition, work->config->deliveries_topic);
        if (judge_remember(work->judge, partition->dedup, record) == 0)
                return WORK_TAKEN;
        (void)error_set_openssl(error, "the record could not be remembered");
        return WORK_FAILED;
}

/* Ask for the position again: what is known of the log may be wrong. */
static enum work_result
look_again(struct partition *partition, const char *why)
{
        char quoted[LOG_QUOTED_SIZE];

        log_info("asking for the position again partition=%" PRId32 " offset=%" PRId64 " reason=%s",
                 partition->id, partition->next, log_quote(why, quoted));
        partition_unplace(partition, TROUBLE_NONE, NULL, 0, clock_monotonic_ms());
        return WORK_UNPLACED;
}

/*
 * The table knows records that were not committed, from a log that may since have been cut off before them: what is
 * accepted now would be taken for a repeat of what is gone.
 */
static enum work_result
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
static enum work_result
take_next(struct work *work, struct partition *partition, const rd_kafka_message_t *message,
          struct error *error)
{
        enum work_result result = WORK_TAKEN;
        struct record record;

        message_record(message, &record);
        if (!partition_confirms(partition, record.offset, record.timestamp_ms)) {
                partition_forget_table(partition, clock_monotonic_ms());
                return look_again(partition,
                                  "another router has committed, and the log is not the one that was "
                                  "read before; filling the table anew");
        }
        if (message->offset < partition->decide_from) {
                result = remember(work, partition, &record, error);
        } else {
                if (partition->next < partition->decide_from && partition->routed_ms >= 0)
                        return diverge(partition, work->config->deliveries_topic);
                if (!partition_can_judge(partition, record.timestamp_ms))
                        return look_again(partition,
                                          "the timestamp falls back behind what is remembered: was a "
                                          "broker's clock wrong? Restoring from an earlier time");
                if (decide(work, partition, &record, message, error) != 0)
                        result = WORK_FAILED;
        }
        if (result == WORK_TAKEN)
                partition_advance(partition, message->offset, record.timestamp_ms);
        return result;
}

enum work_result
work_take(struct work *work, const rd_kafka_message_t *message, const struct consumer_origin *origin,
          struct error *error)
{
        struct partition *partition = partition_find(&work->partitions, message->partition);
        enum work_result result;

        if (partition == NULL || partition->stage != PARTITION_PLACED || message->offset < partition->next)
                return WORK_TAKEN;
        if (!partition_expects(partition, message->offset, origin) && !allows_change(partition, message))
                return WORK_UNPLACED;
        if (partition->known_to > partition->decide_from && partition_open(partition) == 0 &&
            !consumer_origin_is(&partition->known_origin, origin))
                return forget(partition);
        if (message->offset < partition->scan_next)
                partition->scan_next = -1; /* read again from next, for another partition's sake */
        if (partition->scan_next >= 0 || !partition_accepts(partition, message->offset)) {
                partition_scan(partition, message->offset, clock_monotonic_ms());
                work->is_scanning = 1;
                return WORK_TAKEN;
        }
        result = take_next(work, partition, message, error);
        if (result == WORK_UNPLACED)
                return result;
        partition_note_origin(partition, origin);
        if (partition->known_to <= message->offset)
                partition->known_to = message->offset + 1; /* one that failed may be known, too */
        return result;
}

void
work_note_end(struct work *work, int32_t id, int64_t end)
{
        struct partition *partition = partition_find(&work->partitions, id);

        if (partition != NULL)
                partition_note_end(partition, end);
}

int
work_is_full(const struct work *work)
{
        return work->is_open && batch_is_full(&work->batch, work->newest);
}

static void
drop_transaction(struct work *work)
{
        transaction_free(work->transaction);
        work->transaction = NULL;
        work->is_ready = 0;
}

/* Add what is to be committed. Returns -1 when memory fails. */
static int
add_offsets(struct work *work, rd_kafka_topic_partition_list_t *offsets)
{
        for (size_t i = 0; i < work->partitions.n; i++) {
                struct partition *partition = work->partitions.items[i];

                if (partition_open(partition) == 0)
                        continue;
                if (position_add_offset(offsets, work->config->deliveries_topic, partition) != 0)
                        return -1;
                partition_try(partition);
        }
        return 0;
}

int
work_commit(struct work *work, struct error *error)
{
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(8);
        int64_t began_ns = clock_monotonic_ns();
        int result = add_offsets(work, offsets) != 0
                         ? error_set(error, "out of memory")
                         : transaction_commit(work->transaction, work->group, offsets, error);

        rd_kafka_topic_partition_list_destroy(offsets);
        if (result != 0)
                return -1;
        metrics_observe(work->metrics, HISTOGRAM_COMMIT, (uint64_t)(clock_monotonic_ns() - began_ns), 1);
        work->is_behind = work_is_full(work);
        work->is_open = 0;
        for (size_t i = 0; i < work->partitions.n; i++)
                partition_committed(work->partitions.items[i]);
        batch_count(&work->batch, work->newest, work->metrics);
        batch_reset(&work->batch);
        batch_grow(&work->batch, work->newest);
        if (transaction_is_tainted(work->transaction)) {
                log_info("committed, but requests went unanswered; replacing the producer");
                drop_transaction(work);
        }
        return 0;
}

int
work_is_unfenced(const struct work *work)
{
        return work->transaction != NULL && transaction_is_unfenced(work->transaction);
}

/* Exactly one record was refused: from now on its stub takes its place. With more than one the batch is halved until it is one. */
static void
note_refused(struct work *work)
{
        struct partition *partition =
            work->n_refused == 1 ? partition_find(&work->partitions, work->refused.partition) : NULL;
        char quoted[LOG_QUOTED_SIZE];

        /*
         * One before it that is known and not committed yet stays so: the batch is halved until it is committed without this
         * one. One behind it comes later and is found again; kept, it would keep this one from ever being known.
         */
        if (partition == NULL || (partition->unpublishable >= partition->decide_from &&
                                  partition->unpublishable < work->refused.offset))
                return;
        partition->unpublishable = work->refused.offset;
        partition->unpublishable_ms = work->refused.timestamp_ms;
        partition->unpublishable_why = work->refused_why;
        log_error("Kafka refuses a record; putting a stub of it into quarantine partition=%" PRId32
                  " offset=%" PRId64 " reason=%s",
                  partition->id, partition->unpublishable, log_quote(work->refused_why.text, quoted));
}

void
work_give_up(struct work *work)
{
        int64_t now_ms = clock_monotonic_ms();

        if (work->is_open) {
                metrics_count_transaction(work->metrics, 0);
                transaction_learn(work->transaction);
                note_refused(work);
                batch_shrink(&work->batch);
        }
        drop_transaction(work);
        for (size_t i = 0; i < work->partitions.n; i++) {
                struct partition *partition = work->partitions.items[i];

                partition_rewind(partition);
                if (partition->topic[0] != '\0' && partition->stage == PARTITION_PLACED)
                        partition_unplace(partition, TROUBLE_TOPIC, partition->reason.text, TOPIC_PAUSE_MS,
                                          now_ms);
                else if (partition->trouble == TROUBLE_NONE || partition->stage == PARTITION_PLACED)
                        partition_unplace(partition, TROUBLE_NONE, NULL, 0, now_ms);
        }
        work->is_open = 0;
        batch_reset(&work->batch);
}
