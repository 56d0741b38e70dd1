#include "router/processor.h"

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
#include "router/recheck.h"
#include "router/table.h"

#define INIT_TIMEOUT_MS 2000 /* for one call; the next call resumes it */
#define INIT_LIMIT_MS 30000  /* for one producer */
#define TOPIC_PAUSE_MS 1000

/* Apply the newest sources and topics, if memory allows. The judge stays: the dedup tables need its key. */
static void
apply_newest(struct processor *processor)
{
        const struct config *newest = current_hold(processor->current);
        const struct event_rules **rules = calloc(newest->n_sources, sizeof(*rules));

        if (rules == NULL) {
                config_free(newest);
                return;
        }
        for (size_t i = 0; i < newest->n_sources; i++)
                rules[i] = &newest->sources[i].rules;
        judge_set_rules(processor->judge, rules, newest->n_sources, newest->topics);
        free(processor->rules);
        config_free(processor->newest);
        processor->rules = rules;
        processor->newest = newest;
        batch_reload(&processor->batch, newest);
        if (processor->transaction != NULL)
                transaction_prefetch_topics(processor->transaction, newest);
        for (size_t i = 0; i < processor->partitions.n; i++) {
                partition_forget_topic(processor->partitions.items[i]);
                partition_forget_open(processor->partitions.items[i], clock_monotonic_ms());
        }
}

int
processor_is_outdated(const struct processor *processor)
{
        return !current_is(processor->current, processor->newest);
}

void
processor_reload(struct processor *processor)
{
        if (!processor->is_open && processor_is_outdated(processor))
                apply_newest(processor);
}

int
processor_open(struct processor *processor, struct current *current, const char *bootstrap,
               struct metrics *metrics, struct error *error)
{
        memset(processor, 0, sizeof(*processor));
        processor->current = current;
        processor->config = current_first(current);
        processor->bootstrap = bootstrap;
        processor->metrics = metrics;
        processor->decisions.recent = metrics_recent_quarantined(metrics);
        batch_init(&processor->batch, processor->config);
        if (processor->config->state != NULL) {
                processor->state =
                    state_open(processor->config->state, processor->config->deliveries_topic, error);
                if (processor->state == NULL)
                        return error_prefix(error, "state = %s", processor->config->state);
        }
        processor->judge =
            judge_new(NULL, 0, NULL, processor->state == NULL ? NULL : state_key(processor->state));
        if (processor->judge != NULL)
                apply_newest(processor);
        return processor->newest == NULL ? error_set_openssl(error, "cannot create the judge of records") : 0;
}

void
processor_close(struct processor *processor)
{
        if (processor->transaction != NULL)
                transaction_abort(processor->transaction);
        transaction_free(processor->transaction);
        if (processor->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(processor->group);
        table_save(processor->state, &processor->partitions, &processor->followed);
        partition_clear(&processor->partitions);
        partition_clear(&processor->followed);
        state_close(processor->state);
        judge_free(processor->judge);
        batch_free(&processor->batch);
        decision_log_clear(&processor->decisions);
        free(processor->rules);
        config_free(processor->newest);
}

/*
 * Kafka has not accepted a record of the open transaction, which can no longer be committed. The cause is the
 * record, which becomes a stub in quarantine, or its topic: then the partition waits until the topic is
 * available. A refused stub means that the quarantine topic is the cause.
 */
static void
on_failure(const struct transaction_failure *failure, void *arg)
{
        struct processor *processor = arg;
        const struct message_origin *origin = &failure->origin;
        struct partition *partition = partition_find(&processor->partitions, origin->partition);

        if (partition == NULL)
                return;
        if (failure->is_final &&
            !partition_is_unpublishable(partition, origin->offset, origin->timestamp_ms)) {
                processor->n_refused++;
                processor->refused = *origin;
                (void)error_set(&processor->refused_why, "%s", failure->reason);
        } else {
                (void)snprintf(partition->topic, sizeof(partition->topic), "%s", failure->topic);
                (void)error_set(&partition->reason, "%s", failure->reason);
        }
}

int
processor_prepare(struct processor *processor, struct error *error)
{
        int result;

        if (processor->is_ready)
                return 0;
        if (processor->transaction == NULL) {
                processor->transaction =
                    transaction_new(processor->config, processor->bootstrap, on_failure, processor, error);
                if (processor->transaction == NULL)
                        return -1;
                transaction_prefetch_topics(processor->transaction, processor->newest);
                processor->made_ms = clock_monotonic_ms();
        }
        result = transaction_init(processor->transaction, INIT_TIMEOUT_MS, error);
        processor->is_ready = result == 0;
        return result > 0 && clock_monotonic_ms() - processor->made_ms >= INIT_LIMIT_MS ? -1 : result;
}

void
processor_note_membership(struct processor *processor, rd_kafka_t *consumer)
{
        if (processor->group != NULL)
                rd_kafka_consumer_group_metadata_destroy(processor->group);
        processor->group = rd_kafka_consumer_group_metadata(consumer);
}

static void
log_decision(struct processor *processor, const struct record *record, const struct verdict *verdict)
{
        const struct config_source *source =
            config_find_source(processor->newest, record->source.data, record->source.len);

        decision_log_add(&processor->decisions, source == NULL ? "" : source->name, record, verdict);
}

/* Kafka does not accept the record that would be published: put a stub into quarantine instead. */
static void
replace_by_stub(struct verdict *verdict, const char *why)
{
        if (verdict->action == VERDICT_DROP || verdict->action == VERDICT_TEST)
                return;
        verdict->action = VERDICT_QUARANTINE;
        verdict->reason = QUARANTINE_UNPUBLISHABLE;
        (void)snprintf(verdict->detail, sizeof(verdict->detail), "%.*s", DECODE_DETAIL_SIZE - 1, why);
}

static int
begin_transaction(struct processor *processor, struct error *error)
{
        crash_point("before-decision");
        if (!processor->is_ready) /* replaced after a commit that a reload caused */
                return error_set(error, "the producer is being replaced");
        if (!processor->is_behind)
                transaction_wait_for_markers(processor->transaction);
        if (transaction_begin(processor->transaction, error) != 0)
                return -1;
        processor->is_open = 1;
        processor->n_refused = 0;
        return 0;
}

/* Decide a record and carry out the verdict, in the open transaction or a new one. */
static int
decide(struct processor *processor, struct partition *partition, const struct record *record,
       rd_kafka_message_t *message, struct error *error)
{
        struct verdict verdict;
        int result;

        if (!processor->is_open && begin_transaction(processor, error) != 0)
                return -1;
        if (judge_decide(processor->judge, partition->dedup, record, &verdict) != 0)
                return error_set_openssl(error, "the record could not be decided");
        if (partition_is_unpublishable(partition, record->offset, record->timestamp_ms))
                replace_by_stub(&verdict, partition->unpublishable_why.text);
        else if (transaction_is_too_large(record->key.len + record->body.len))
                replace_by_stub(&verdict, "it is larger than any broker accepts");
        log_decision(processor, record, &verdict); /* batch_add() takes headers that record points to */
        result = batch_add(&processor->batch, processor->newest, processor->transaction, record, message,
                           &verdict, error);
        crash_point("after-produce");
        return result;
}

/* Add a record that was routed before to the dedup table. */
static enum processor_result
remember(struct processor *processor, struct partition *partition, const struct record *record,
         struct error *error)
{
        if (!partition_recognises(partition, record->offset, record->timestamp_ms)) {
                recheck_divergence(partition, processor->config->deliveries_topic);
                return PROCESSOR_UNPOSITIONED;
        }
        if (config_find_source(processor->newest, record->source.data, record->source.len) == NULL)
                decision_log_strange(&processor->decisions, record);
        if (judge_remember(processor->judge, partition->dedup, record) == 0)
                return PROCESSOR_DONE;
        (void)error_set_openssl(error, "the record could not be remembered");
        return PROCESSOR_FAILED;
}

/* Decide a record, if that is possible now. */
static enum processor_result
decide_next(struct processor *processor, struct partition *partition, const struct record *record,
            rd_kafka_message_t *message, struct error *error)
{
        if (partition->next < partition->decide_from && partition->routed_ms >= 0)
                recheck_divergence(partition, processor->config->deliveries_topic);
        else if (!partition_can_judge(partition, record->timestamp_ms))
                recheck(partition, "timestamp before the dedup table; was a broker's clock wrong?");
        else
                return decide(processor, partition, record, message, error) == 0 ? PROCESSOR_DONE
                                                                                 : PROCESSOR_FAILED;
        return PROCESSOR_UNPOSITIONED;
}

/* A followed partition has a record that may not be routed yet: there are no others to remember now. */
static enum processor_result
end_following(const struct processor *processor, struct partition *partition)
{
        if (partition->next < partition->decide_from && partition->routed_ms >= 0) {
                recheck_divergence(partition, processor->config->deliveries_topic);
                return PROCESSOR_UNPOSITIONED;
        }
        partition->next = partition->decide_from;
        return PROCESSOR_DONE;
}

/* Process a record that is the next one of its partition, judging by its offset. */
static enum processor_result
take_next(struct processor *processor, struct partition *partition, rd_kafka_message_t *message,
          struct error *error)
{
        enum processor_result result;
        const char *fault = NULL;
        struct record record;

        message_record(message, &record);
        if (!partition_confirms(partition, record.offset, record.timestamp_ms)) {
                partition_forget_table(partition, clock_monotonic_ms());
                recheck(partition, "another router has committed to another log; restoring the table");
                return PROCESSOR_UNPOSITIONED;
        }
        if (partition->is_followed && message->offset >= partition->decide_from)
                return end_following(processor, partition);
        result = message->offset < partition->decide_from
                     ? remember(processor, partition, &record, error)
                     : decide_next(processor, partition, &record, message, error);
        if (result == PROCESSOR_DONE)
                partition_advance(partition, message->offset, record.timestamp_ms);
        else if (result == PROCESSOR_FAILED)
                fault = table_fault(processor->state, partition, clock_monotonic_ms());
        if (fault == NULL)
                return result;
        recheck(partition, fault);
        return PROCESSOR_UNPOSITIONED;
}

static enum processor_result
take(struct processor *processor, struct partition_list *partitions, rd_kafka_message_t *message,
     const struct consumer_origin *origin, struct error *error)
{
        struct partition *partition = partition_find(partitions, message->partition);
        enum processor_result result;

        if (partition == NULL || partition->stage != PARTITION_POSITIONED ||
            message->offset < partition->next ||
            (partition->is_followed && partition->next >= partition->decide_from))
                return PROCESSOR_DONE;
        if (!partition_expects(partition, message->offset, origin) &&
            !recheck_allows_change(partition, message->offset, message_timestamp_ms(message)))
                return PROCESSOR_UNPOSITIONED;
        if (partition->known_to > partition->decide_from && partition_open(partition) == 0 &&
            !consumer_origin_is(&partition->known_origin, origin)) {
                recheck_open(partition);
                return PROCESSOR_UNPOSITIONED;
        }
        if (message->offset < partition->scan_next)
                partition->scan_next = -1; /* read again from next because another partition was */
        if (partition->scan_next >= 0 || !partition_accepts(partition, message->offset)) {
                partition_scan(partition, message->offset, clock_monotonic_ms());
                processor->is_scanning = 1;
                return PROCESSOR_DONE;
        }
        result = take_next(processor, partition, message, error);
        if (result == PROCESSOR_UNPOSITIONED)
                return result;
        partition_note_origin(partition, origin);
        if (partition->known_to <= message->offset)
                partition->known_to = message->offset + 1; /* even a failed record may be in the table */
        return result;
}

enum processor_result
processor_take(struct processor *processor, struct partition_list *partitions, rd_kafka_message_t *message,
               const struct consumer_origin *origin, struct error *error)
{
        enum processor_result result = take(processor, partitions, message, origin, error);

        rd_kafka_message_destroy(message);
        return result;
}

int
processor_is_full(const struct processor *processor)
{
        return processor->is_open && batch_is_full(&processor->batch, processor->newest);
}

static void
drop_transaction(struct processor *processor)
{
        transaction_free(processor->transaction);
        processor->transaction = NULL;
        processor->is_ready = 0;
}

/* Collect the offsets to commit. Returns -1 when memory fails. */
static int
add_offsets(struct processor *processor, rd_kafka_topic_partition_list_t *offsets)
{
        for (size_t i = 0; i < processor->partitions.n; i++) {
                struct partition *partition = processor->partitions.items[i];

                if (partition_open(partition) == 0)
                        continue;
                if (position_add_offset(offsets, processor->config->deliveries_topic, partition) != 0)
                        return -1;
                partition_try(partition);
        }
        return 0;
}

int
processor_commit(struct processor *processor, struct error *error)
{
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(8);
        int64_t began_ns = clock_monotonic_ns();
        int is_full = processor_is_full(processor); /* now: the commit's own time does not count */
        int result = add_offsets(processor, offsets) != 0
                         ? error_set(error, "out of memory")
                         : transaction_commit(processor->transaction, processor->group, offsets, error);

        rd_kafka_topic_partition_list_destroy(offsets);
        if (result != 0)
                return -1;
        metrics_observe(processor->metrics, HISTOGRAM_COMMIT, (uint64_t)(clock_monotonic_ns() - began_ns), 1);
        processor->is_behind = is_full;
        processor->is_open = 0;
        for (size_t i = 0; i < processor->partitions.n; i++)
                partition_committed(processor->partitions.items[i]);
        batch_count(&processor->batch, processor->newest, processor->metrics);
        batch_adapt(&processor->batch, processor->newest, transaction_slowest_ms(processor->transaction));
        batch_reset(&processor->batch);
        table_tend(processor->state, &processor->partitions, &processor->followed);
        if (transaction_is_tainted(processor->transaction)) {
                log_info("committed, but requests went unanswered; replacing the producer");
                drop_transaction(processor);
        }
        return 0;
}

int
processor_has_old_brokers(const struct processor *processor)
{
        return processor->transaction != NULL && transaction_has_old_brokers(processor->transaction);
}

/* Use the stub of a single refused record from now on; with several, the batch is halved until it is one. */
static void
note_refused(struct processor *processor)
{
        struct partition *partition =
            processor->n_refused == 1 ? partition_find(&processor->partitions, processor->refused.partition)
                                      : NULL;
        char quoted[LOG_QUOTED_SIZE];

        /*
         * Keep an earlier unpublishable record that is not committed yet: the batch is halved until it is
         * committed without this one. A later one may be replaced, since it will be found again.
         */
        if (partition == NULL || (partition->unpublishable >= partition->decide_from &&
                                  partition->unpublishable < processor->refused.offset))
                return;
        partition->unpublishable = processor->refused.offset;
        partition->unpublishable_ms = processor->refused.timestamp_ms;
        partition->unpublishable_why = processor->refused_why;
        log_error("Kafka refuses a record; putting a stub of it into quarantine partition=%" PRId32
                  " offset=%" PRId64 " reason=%s",
                  partition->id, partition->unpublishable, log_quote(processor->refused_why.text, quoted));
}

void
processor_abandon(struct processor *processor)
{
        int64_t now_ms = clock_monotonic_ms();

        if (processor->is_open) {
                metrics_count(processor->metrics, METRICS_ABORTED, 1);
                transaction_poll_reports(processor->transaction);
                note_refused(processor);
                batch_shrink(&processor->batch);
        }
        drop_transaction(processor);
        for (size_t i = 0; i < processor->partitions.n; i++) {
                struct partition *partition = processor->partitions.items[i];

                partition_rewind(partition);
                if (partition->topic[0] != '\0' && partition->stage == PARTITION_POSITIONED)
                        partition_void_position(partition, TROUBLE_TOPIC, partition->reason.text,
                                                TOPIC_PAUSE_MS, now_ms);
                else if (partition->trouble == TROUBLE_NONE || partition->stage == PARTITION_POSITIONED)
                        partition_void_position(partition, TROUBLE_NONE, NULL, 0, now_ms);
        }
        processor->is_open = 0;
        batch_reset(&processor->batch);
}
