#include "router/worker.h"

#include <stdlib.h>
#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/consumer.h"
#include "kafka/transaction.h"
#include "model/judge.h"
#include "router/batch.h"
#include "router/incoming.h"
#include "router/partition.h"
#include "router/position.h"

#define POLL_MS 100
#define INIT_TIMEOUT_MS 2000
#define PAUSE_MS 200
#define REPORT_INTERVAL_MS 1000

/*
 * The worker goes round one loop. What it needs before it can decide a record it makes first: a producer that is ready,
 * then a position in each partition that it was given. Any trouble in a transaction, and any change of its partitions
 * while one is open, throws both away; that is the one way of recovering.
 */
struct worker {
        const struct config *config;
        const char *bootstrap;
        struct metrics *metrics;
        struct worker_status *status;

        struct judge *judge;
        const struct event_rules **rules;
        struct consumer *consumer;
        struct transaction *transaction; /* NULL: to be made */
        int transaction_ready;           /* has fenced its predecessors */
        int transaction_open;

        rd_kafka_topic_partition_list_t *assigned; /* NULL: none given yet, or taken away */
        int positioned; /* the assigned partitions are being read from where they should */
        struct partition_list partitions;
        struct batch batch;

        int exit_status;
        int64_t reported_ms;
};

static void
pause_ms(int ms)
{
        const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

        (void)nanosleep(&pause, NULL);
}

static void
set_state(struct worker *worker, enum worker_state state)
{
        atomic_store(&worker->status->state, state);
}

static void
on_assigned(const rd_kafka_topic_partition_list_t *partitions, void *arg)
{
        struct worker *worker = arg;

        if (worker->assigned != NULL)
                rd_kafka_topic_partition_list_destroy(worker->assigned);
        worker->assigned = rd_kafka_topic_partition_list_copy(partitions);
        worker->positioned = 0;
}

static void
on_revoked(void *arg)
{
        struct worker *worker = arg;

        if (worker->assigned != NULL)
                rd_kafka_topic_partition_list_destroy(worker->assigned);
        worker->assigned = NULL;
        worker->positioned = 0;
        set_state(worker, WORKER_RESTORING);
}

/* The one recovery: what was open is aborted, the next round makes all anew from what was committed. */
static void
recover(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (reason != NULL)
                log_warning("transaction given up, starting again from the committed offsets reason=%s",
                            log_quote(reason, quoted));
        if (worker->transaction_open)
                metrics_count_transaction(worker->metrics, 0);
        transaction_free(worker->transaction);
        worker->transaction = NULL;
        worker->transaction_ready = 0;
        worker->transaction_open = 0;
        worker->positioned = 0;
        batch_reset(&worker->batch);
        set_state(worker, WORKER_RESTORING);
}

/* Returns 0 when the producer is ready, -1 when to try again. */
static int
prepare_transaction(struct worker *worker)
{
        struct error error;
        int result;

        if (worker->transaction_ready)
                return 0;
        if (worker->transaction == NULL)
                worker->transaction = transaction_new(worker->config, worker->bootstrap, &error);
        result =
            worker->transaction == NULL ? -1 : transaction_init(worker->transaction, INIT_TIMEOUT_MS, &error);
        if (result == 0) {
                worker->transaction_ready = 1;
                return 0;
        }
        if (result < 0) {
                recover(worker, error.text);
                pause_ms(PAUSE_MS);
        }
        return -1;
}

/* Returns 0 when every assigned partition has its position, -1 when to try again or to end. */
static int
prepare_position(struct worker *worker)
{
        struct error error;

        switch (
            position_take(worker->config, worker->consumer, worker->assigned, &worker->partitions, &error)) {
        case POSITION_TAKEN:
                worker->positioned = 1;
                return 0;
        case POSITION_REFUSED:
                log_error("cannot route: %s", error.text);
                worker->exit_status = EX_CONFIG;
                return -1;
        case POSITION_RETRY:
                break;
        }
        pause_ms(PAUSE_MS);
        return -1;
}

/* Commit the open batch with the offsets it has come to. Returns 0, or -1 after recovering. */
static int
commit(struct worker *worker)
{
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(8);
        struct error error;
        int result;

        for (size_t i = 0; i < worker->partitions.n; i++) {
                if (partition_open(&worker->partitions.items[i]) > 0)
                        position_add_offset(offsets, worker->config->deliveries_topic,
                                            &worker->partitions.items[i]);
        }
        result = transaction_commit(worker->transaction, consumer_client(worker->consumer), offsets, &error);
        rd_kafka_topic_partition_list_destroy(offsets);
        if (result != 0) {
                recover(worker, error.text);
                return -1;
        }
        worker->transaction_open = 0;
        for (size_t i = 0; i < worker->partitions.n; i++)
                partition_committed(&worker->partitions.items[i]);
        batch_count(&worker->batch, worker->config, worker->metrics);
        batch_reset(&worker->batch);
        return 0;
}

/* Decide a record and do what was decided, in a transaction that is opened for it if none is. */
static int
decide(struct worker *worker, struct partition *partition, const struct record *record,
       const rd_kafka_message_t *message, struct error *error)
{
        struct verdict verdict;

        if (!worker->transaction_open) {
                if (transaction_begin(worker->transaction, error) != 0)
                        return -1;
                worker->transaction_open = 1;
        }
        if (judge_decide(worker->judge, partition->dedup, record, &verdict) != 0)
                return error_set(error, "out of memory");
        return batch_add(&worker->batch, worker->config, worker->transaction, record, message, &verdict,
                         error);
}

static void
take_message(struct worker *worker, const rd_kafka_message_t *message)
{
        struct partition *partition = partition_find(&worker->partitions, message->partition);
        struct record record;
        struct error error;
        int result;

        if (partition == NULL || message->offset < partition->next)
                return; /* fetched before a new position was taken */
        if (!partition_accepts(partition, message->offset)) {
                recover(worker, "records are missing before one that came; reading them again");
                return;
        }
        incoming_record(message, &record);
        if (message->offset < partition->decide_from)
                result = judge_remember(worker->judge, partition->dedup, &record);
        else
                result = decide(worker, partition, &record, message, &error);
        if (result != 0) {
                recover(worker, message->offset < partition->decide_from ? "out of memory" : error.text);
                pause_ms(PAUSE_MS);
                return;
        }
        partition_advance(partition, message->offset, record.timestamp_ms);
}

/* Tables and lag, for the metrics, at most once a second. */
static void
report(struct worker *worker)
{
        int64_t now = clock_monotonic_ms(), lag = 0;
        size_t remembered = 0;
        int restoring = 0;

        atomic_store(&worker->status->alive_ms, now);
        if (now - worker->reported_ms < REPORT_INTERVAL_MS &&
            atomic_load(&worker->status->state) == WORKER_ROUTING)
                return;
        for (size_t i = 0; i < worker->partitions.n; i++) {
                struct partition *partition = &worker->partitions.items[i];

                remembered += partition->dedup == NULL ? 0 : dedup_size(partition->dedup);
                restoring |= partition->next < partition->decide_from;
                lag += incoming_lag(worker->consumer, worker->config->deliveries_topic, partition);
        }
        metrics_set_router(worker->metrics, remembered, (uint64_t)lag);
        worker->reported_ms = now;
        if (worker->positioned && !restoring)
                set_state(worker, WORKER_ROUTING);
}

/* Take what the poll gave. Returns whether the batch is to be committed now. */
static int
take(struct worker *worker, enum consumer_result result, rd_kafka_message_t *message,
     const struct error *error)
{
        switch (result) {
        case CONSUMER_MESSAGE:
                if (worker->positioned)
                        take_message(worker, message);
                rd_kafka_message_destroy(message);
                return worker->transaction_open && batch_is_full(&worker->batch, worker->config);
        case CONSUMER_NOTHING:
                return worker->transaction_open;
        case CONSUMER_LOST:
                recover(worker, error->text);
                pause_ms(PAUSE_MS);
                return 0;
        case CONSUMER_FENCED:
                log_error("another router runs as instance=%s: give each its own `instance` in [gatepost]",
                          worker->config->instance);
                worker->exit_status = EX_CONFIG;
                return 0;
        case CONSUMER_BROKEN:
                log_error("the consumer failed for good: %s", error->text);
                worker->exit_status = EX_SOFTWARE;
                return 0;
        }
        return 0;
}

/* One round: one record, or the end of a batch. */
static void
step(struct worker *worker)
{
        rd_kafka_message_t *message;
        struct error error;
        enum consumer_result result;

        report(worker);
        if (prepare_transaction(worker) != 0)
                return;
        if (worker->assigned != NULL && !worker->positioned && prepare_position(worker) != 0)
                return;
        result = consumer_poll(worker->consumer, worker->transaction_open ? 0 : POLL_MS, &message, &error);
        /* Taken away, or given anew, while the poll was under way: what is open is no longer ours to commit. */
        if (worker->transaction_open && !worker->positioned) {
                if (result == CONSUMER_MESSAGE)
                        rd_kafka_message_destroy(message);
                recover(worker, NULL);
                return;
        }
        if (take(worker, result, message, &error) && commit(worker) == 0)
                report(worker);
}

static int
open_worker(struct worker *worker, struct error *error)
{
        static const struct consumer_events events = {on_assigned, on_revoked};
        const struct config *config = worker->config;

        worker->rules = mem_alloc(config->n_sources * sizeof(*worker->rules));
        for (size_t i = 0; i < config->n_sources; i++)
                worker->rules[i] = &config->sources[i].rules;
        batch_init(&worker->batch, config);
        worker->judge = judge_new(worker->rules, config->n_sources, config->topics);
        if (worker->judge == NULL)
                return error_set(error, "out of memory");
        worker->consumer = consumer_new(config, worker->bootstrap, &events, worker, error);
        return worker->consumer == NULL ? -1 : 0;
}

static void
close_worker(struct worker *worker)
{
        transaction_free(worker->transaction);
        consumer_free(worker->consumer);
        if (worker->assigned != NULL)
                rd_kafka_topic_partition_list_destroy(worker->assigned);
        partition_clear(&worker->partitions);
        judge_free(worker->judge);
        batch_free(&worker->batch);
        free(worker->rules);
}

int
worker_run(const struct config *config, const char *bootstrap, struct metrics *metrics,
           struct worker_status *status)
{
        struct worker worker = {.config = config,
                                .bootstrap = bootstrap,
                                .metrics = metrics,
                                .status = status};
        struct error error;

        if (open_worker(&worker, &error) != 0) {
                log_error("the router does not start: %s", error.text);
                worker.exit_status = EX_SOFTWARE;
        }
        while (worker.exit_status == 0 && !atomic_load(&status->stopping))
                step(&worker);
        if (worker.transaction_open && worker.positioned && worker.exit_status == 0)
                (void)commit(&worker);
        close_worker(&worker);
        return worker.exit_status;
}
