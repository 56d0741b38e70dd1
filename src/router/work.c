#include "router/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/message.h"
#include "router/position.h"

#define INIT_TIMEOUT_MS 2000

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
}

void
work_renew(struct work *work)
{
        if (!work->is_open && !current_is(work->current, work->newest))
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
        return work->newest == NULL ? error_set(error, "out of memory") : 0;
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

int
work_prepare(struct work *work, struct error *error)
{
        int result;

        if (work->is_ready)
                return 0;
        if (work->transaction == NULL) {
                work->transaction = transaction_new(work->config, work->bootstrap, error);
                if (work->transaction == NULL)
                        return -1;
                transaction_know_topics(work->transaction, work->newest);
        }
        result = transaction_init(work->transaction, INIT_TIMEOUT_MS, error);
        work->is_ready = result == 0;
        return result;
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

/* Decide a record and do what was decided, in a transaction that is opened for it if none is. */
static int
decide(struct work *work, struct partition *partition, const struct record *record,
       const rd_kafka_message_t *message, struct error *error)
{
        struct verdict verdict;
        int result;

        if (!work->is_open) {
                crash_point("before-decision");
                if (!work->is_behind)
                        transaction_settle(work->transaction);
                if (transaction_begin(work->transaction, error) != 0)
                        return -1;
                work->is_open = 1;
        }
        if (judge_decide(work->judge, partition->dedup, record, &verdict) != 0)
                return error_set(error, "out of memory");
        result = batch_add(&work->batch, work->newest, work->transaction, record, message, &verdict, error);
        crash_point("after-produce");
        if (result == 0)
                tell(work, record, &verdict);
        return result;
}

/* Only remember a record that was routed before. */
static enum work_result
remember(struct work *work, struct partition *partition, const struct record *record, struct error *error)
{
        if (!partition_recognises(partition, record->offset, record->timestamp_ms)) {
                (void)error_set(
                    error,
                    "partition %d of %s has another record at offset %" PRId64
                    " than the one that was routed: the log was cut off, or the topic made anew. Compare "
                    "with what "
                    "was published, then set the group's offset: kafka-consumer-groups.sh --reset-offsets",
                    partition->id, work->config->deliveries_topic, record->offset);
                return WORK_REFUSED;
        }
        if (judge_remember(work->judge, partition->dedup, record) == 0)
                return WORK_TAKEN;
        (void)error_set(error, "out of memory");
        return WORK_FAILED;
}

enum work_result
work_take(struct work *work, const rd_kafka_message_t *message, struct error *error)
{
        struct partition *partition = partition_find(&work->partitions, message->partition);
        enum work_result result = WORK_TAKEN;
        struct record record;

        if (partition == NULL || message->offset < partition->next)
                return WORK_TAKEN;
        if (!partition_accepts(partition, message->offset)) {
                (void)error_set(error, "records are missing before one that came; reading them again");
                return WORK_GAP;
        }
        work_renew(work);
        message_record(message, &record);
        if (message->offset >= partition->decide_from &&
            !partition_can_judge(partition, record.timestamp_ms)) {
                (void)error_set(error,
                                "the timestamp falls back behind what is remembered: was a broker's clock "
                                "wrong? Reading back further");
                return WORK_GAP;
        }
        if (message->offset < partition->decide_from)
                result = remember(work, partition, &record, error);
        else if (decide(work, partition, &record, message, error) != 0)
                result = WORK_FAILED;
        if (result == WORK_TAKEN)
                partition_advance(partition, message->offset, record.timestamp_ms);
        return result;
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

int
work_commit(struct work *work, struct error *error)
{
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(8);
        int64_t began_ns = clock_monotonic_ns();
        int result = 0;

        for (size_t i = 0; i < work->partitions.n; i++) {
                const struct partition *partition = &work->partitions.items[i];

                if (partition_open(partition) > 0 &&
                    position_add_offset(offsets, work->config->deliveries_topic, partition) != 0)
                        result = error_set(error, "out of memory");
        }
        if (result == 0)
                result = transaction_commit(work->transaction, work->group, offsets, error);
        rd_kafka_topic_partition_list_destroy(offsets);
        if (result != 0)
                return -1;
        metrics_observe(work->metrics, HISTOGRAM_COMMIT, (uint64_t)(clock_monotonic_ns() - began_ns), 1);
        work->is_behind = work_is_full(work);
        work->is_open = 0;
        for (size_t i = 0; i < work->partitions.n; i++)
                partition_committed(&work->partitions.items[i]);
        batch_count(&work->batch, work->newest, work->metrics);
        batch_reset(&work->batch);
        if (transaction_is_tainted(work->transaction)) {
                log_info("committed, but requests went unanswered; going on with another producer");
                drop_transaction(work);
        }
        return 0;
}

void
work_give_up(struct work *work)
{
        if (work->is_open)
                metrics_count_transaction(work->metrics, 0);
        drop_transaction(work);
        work->is_open = 0;
        batch_reset(&work->batch);
}
