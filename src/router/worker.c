#include "router/worker.h"

#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "kafka/consumer.h"
#include "router/incoming.h"
#include "router/position.h"
#include "router/work.h"

#define POLL_MS 100
#define PAUSE_MS 200
#define REPORT_INTERVAL_MS 200

/*
 * Being fenced once may be our own doing: a join whose answer was lost with its broker leaves the name to a member that
 * nobody is. Being fenced again and again is another router of the same name.
 */
#define FENCED_MAX 5
#define FENCED_WITHIN_MS 120000
#define FENCED_PAUSE_MS 1000

/*
 * The worker goes round one loop. What it needs before it can decide a record it makes first: a producer that is ready,
 * then a position in each partition that it was given. Any trouble in a transaction, and any change of its partitions
 * while one is open, throws both away; that is the one way of recovering.
 */
struct worker {
        const struct config *config;
        const char *bootstrap;
        struct worker_status *status;

        struct consumer *consumer;                 /* NULL: to be made */
        rd_kafka_topic_partition_list_t *assigned; /* NULL: none given yet, or taken away */
        int positioned; /* the assigned partitions are being read from where they should */
        struct work work;

        int n_fenced; /* since */
        int64_t fenced_since_ms;
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
        work_give_up(&worker->work);
        worker->positioned = 0;
        set_state(worker, WORKER_RESTORING);
}

/* Returns 0 when the producer is ready, -1 when to try again. */
static int
prepare_work(struct worker *worker)
{
        struct error error;
        int result = work_prepare(&worker->work, &error);

        if (result < 0) {
                recover(worker, error.text);
                pause_ms(PAUSE_MS);
        }
        return result == 0 ? 0 : -1;
}

/* Returns 0 when every assigned partition has its position, -1 when to try again or to end. */
static int
prepare_position(struct worker *worker)
{
        struct error error;

        switch (position_take(worker->config, worker->consumer, worker->assigned, &worker->work.partitions,
                              &error)) {
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

/* Commit what is open, or recover. */
static void
commit(struct worker *worker)
{
        struct error error;

        if (work_commit(&worker->work, consumer_client(worker->consumer), &error) != 0)
                recover(worker, error.text);
}

static void
take_message(struct worker *worker, const rd_kafka_message_t *message)
{
        struct error error;

        if (work_take(&worker->work, message, &error) == 0)
                return;
        recover(worker, error.text);
        pause_ms(PAUSE_MS);
}

/* What others see of the worker: that it lives, and now and then its tables, its lag and its state. */
static void
report(struct worker *worker)
{
        const struct partition_list *partitions = &worker->work.partitions;
        int64_t now = clock_monotonic_ms(), lag = 0;
        size_t remembered = 0;
        int restoring = 0;

        atomic_store(&worker->status->alive_ms, now);
        if (now - worker->reported_ms < REPORT_INTERVAL_MS)
                return;
        for (size_t i = 0; i < partitions->n; i++) {
                const struct partition *partition = &partitions->items[i];

                remembered += partition->dedup == NULL ? 0 : dedup_size(partition->dedup);
                restoring |= partition->next < partition->decide_from;
                if (worker->consumer != NULL)
                        lag += incoming_lag(worker->consumer, worker->config->deliveries_topic, partition);
        }
        metrics_set_router(worker->work.metrics, remembered, (uint64_t)lag);
        worker->reported_ms = now;
        if (worker->positioned && !restoring)
                set_state(worker, WORKER_ROUTING);
}

static void
note_fenced(struct worker *worker)
{
        int64_t now = clock_monotonic_ms();

        if (worker->n_fenced == 0 || now - worker->fenced_since_ms > FENCED_WITHIN_MS) {
                worker->n_fenced = 0;
                worker->fenced_since_ms = now;
        }
        if (++worker->n_fenced < FENCED_MAX)
                return;
        log_error("another router runs as instance=%s: give each its own `instance` in [gatepost]",
                  worker->config->instance);
        worker->exit_status = EX_CONFIG;
}

/* The consumer has failed for good: the next round makes another, and all goes on from what was committed. */
static void
replace_consumer(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        log_warning("the consumer failed and is replaced reason=%s", log_quote(reason, quoted));
        recover(worker, NULL);
        consumer_free(worker->consumer);
        worker->consumer = NULL;
        set_state(worker, WORKER_STARTING);
        pause_ms(FENCED_PAUSE_MS);
}

/* Returns 0 when there is a consumer, -1 when to try again. */
static int
prepare_consumer(struct worker *worker)
{
        static const struct consumer_events events = {on_assigned, on_revoked};
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        if (worker->consumer != NULL)
                return 0;
        worker->consumer = consumer_new(worker->config, worker->bootstrap, &events, worker, &error);
        if (worker->consumer != NULL)
                return 0;
        log_error("a consumer cannot be made reason=%s", log_quote(error.text, quoted));
        pause_ms(FENCED_PAUSE_MS);
        return -1;
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
                return work_is_full(&worker->work);
        case CONSUMER_NOTHING:
                return worker->work.is_open;
        case CONSUMER_LOST:
                recover(worker, error->text);
                pause_ms(PAUSE_MS);
                return 0;
        case CONSUMER_FENCED:
                note_fenced(worker);
                replace_consumer(worker, error->text);
                return 0;
        case CONSUMER_BROKEN:
                replace_consumer(worker, error->text);
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
        if (prepare_consumer(worker) != 0 || prepare_work(worker) != 0)
                return;
        if (worker->assigned != NULL && !worker->positioned && prepare_position(worker) != 0)
                return;
        result = consumer_poll(worker->consumer, worker->work.is_open ? 0 : POLL_MS, &message, &error);
        /* Taken away, or given anew, while the poll was under way: what is open is no longer ours to commit. */
        if (worker->work.is_open && !worker->positioned) {
                if (result == CONSUMER_MESSAGE)
                        rd_kafka_message_destroy(message);
                recover(worker, NULL);
                return;
        }
        if (take(worker, result, message, &error))
                commit(worker);
}

static void
close_worker(struct worker *worker)
{
        work_close(&worker->work);
        consumer_free(worker->consumer);
        if (worker->assigned != NULL)
                rd_kafka_topic_partition_list_destroy(worker->assigned);
}

int
worker_run(const struct config *config, const char *bootstrap, struct metrics *metrics,
           struct worker_status *status)
{
        struct worker worker = {.config = config, .bootstrap = bootstrap, .status = status};
        struct error error;

        if (work_open(&worker.work, config, bootstrap, metrics, &error) != 0) {
                log_error("the router does not start: %s", error.text);
                worker.exit_status = EX_SOFTWARE;
        }
        while (worker.exit_status == 0 && !atomic_load(&status->stopping))
                step(&worker);
        if (worker.work.is_open && worker.positioned && worker.exit_status == 0)
                commit(&worker);
        close_worker(&worker);
        return worker.exit_status;
}
