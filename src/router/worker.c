#include "router/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "router/incoming.h"
#include "router/member.h"
#include "router/position.h"
#include "router/standing.h"
#include "router/work.h"

#define POLL_MS 100
#define PAUSE_MS 200
#define REPLACE_PAUSE_MS 1000
#define REPORT_INTERVAL_MS 200
#define REFUSED_FOR_MS 10000 /* a broker that was cut off may tell of an old end of the log for a while */
#define REASON_SIZE 256
#define TROUBLED_FOR_MS 5000 /* after which, when nothing waits, trouble without a commit counts as over */
#define TELL_AGAIN_MS 10000

/*
 * The worker goes round one loop. What it needs before it can decide a record it makes first: a consumer, a producer that
 * is ready, then a position in each partition that it was given. Any trouble in a transaction, and any change of its
 * partitions while one is open, throws producer and position away; that is the one way of recovering.
 */
struct worker {
        const struct config *config;
        struct worker_status *status;
        struct member member;
        struct work work;
        int positioned;      /* the assigned partitions are being read from where they should */
        int troubled;        /* since a recovery nothing was committed, and something waits */
        int64_t troubled_ms; /* monotonic time of that recovery */
        int64_t told_ms;     /* of the last line about trouble; 0: none since a commit */
        int exit_status;
        int64_t refused_since_ms; /* monotonic; 0: the position was not refused */
        int64_t reported_ms;
        char waiting_for[REASON_SIZE]; /* what it was last logged to wait for; empty: nothing */
};

static void
set_trouble(struct worker *worker, const char *reason)
{
        pthread_mutex_lock(&worker->status->mutex);
        (void)error_set(&worker->status->trouble, "%s", reason);
        pthread_mutex_unlock(&worker->status->mutex);
}

static void
set_state(struct worker *worker, enum worker_state state)
{
        atomic_store(&worker->status->state, state);
        if (state == WORKER_ROUTING)
                set_trouble(worker, "");
}

/* Note trouble that comes again and again as long as its cause lasts. Returns whether to log it. */
static int
note_trouble(struct worker *worker, const char *reason)
{
        int64_t now = clock_monotonic_ms();
        int is_due = worker->told_ms == 0 || now - worker->told_ms >= TELL_AGAIN_MS;

        set_trouble(worker, reason);
        worker->troubled = 1;
        worker->troubled_ms = now;
        if (is_due)
                worker->told_ms = now;
        return is_due;
}

/* Say why the worker cannot go on now, when that is news. */
static void
wait_for(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        set_trouble(worker, reason);
        if (strncmp(worker->waiting_for, reason, REASON_SIZE - 1) == 0)
                return;
        (void)snprintf(worker->waiting_for, REASON_SIZE, "%s", reason);
        log_warning("the router waits reason=%s", log_quote(reason, quoted));
}

/* The one recovery: what was open is aborted, the next round makes all anew from what was committed. */
static void
recover(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (reason != NULL && note_trouble(worker, reason))
                log_warning("transaction given up, starting again from the committed offsets reason=%s",
                            log_quote(reason, quoted));
        pulse_wait(&worker->status->pulse);
        work_give_up(&worker->work);
        worker->positioned = 0;
        set_state(worker, WORKER_RESTORING);
}

/* Returns 0 when the producer is ready, -1 when to try again. */
static int
prepare_work(struct worker *worker)
{
        struct error error;
        int result;

        pulse_wait(&worker->status->pulse);
        result = work_prepare(&worker->work, &error);
        pulse_beat(&worker->status->pulse);
        if (result == 0)
                return 0;
        wait_for(worker, error.text);
        worker->positioned = 0; /* what is polled meanwhile is passed over, and read again */
        if (result < 0) {
                recover(worker, NULL);
                clock_sleep_ms(PAUSE_MS);
        }
        return -1;
}

static void
refuse(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        log_error("cannot route reason=%s", log_quote(reason, quoted));
        worker->exit_status = EX_CONFIG;
}

/* Kafka's answers make no sense. When they stay so, a person must decide. */
static void
note_refused(struct worker *worker, const char *reason)
{
        int64_t now = clock_monotonic_ms();

        if (worker->refused_since_ms == 0)
                worker->refused_since_ms = now;
        if (now - worker->refused_since_ms >= REFUSED_FOR_MS)
                refuse(worker, reason);
}

/* Returns 0 when every assigned partition has its position, -1 when to try again or to end. */
static int
prepare_position(struct worker *worker)
{
        struct error error;
        enum position_result result;

        work_join(&worker->work, consumer_client(worker->member.consumer));
        pulse_wait(&worker->status->pulse);
        result = position_take(worker->config, worker->member.consumer, worker->member.assigned,
                               &worker->work.partitions, &error);
        pulse_beat(&worker->status->pulse);
        if (result == POSITION_TAKEN) {
                worker->positioned = 1;
                worker->refused_since_ms = 0;
                worker->waiting_for[0] = '\0';
                return 0;
        }
        wait_for(worker, error.text);
        if (result == POSITION_REFUSED)
                note_refused(worker, error.text);
        else
                worker->refused_since_ms = 0;
        clock_sleep_ms(PAUSE_MS);
        return -1;
}

/* Returns 0 when there is a consumer, -1 when to try again. */
static int
prepare_member(struct worker *worker)
{
        struct error error;

        if (member_prepare(&worker->member, &error) == 0)
                return 0;
        wait_for(worker, error.text);
        clock_sleep_ms(REPLACE_PAUSE_MS);
        return -1;
}

/* Commit what is open, or recover. */
static void
commit(struct worker *worker)
{
        struct error error;

        pulse_wait(&worker->status->pulse);
        if (work_commit(&worker->work, &error) == 0) {
                worker->troubled = 0;
                worker->told_ms = 0;
                return;
        }
        recover(worker, error.text);
        clock_sleep_ms(PAUSE_MS);
}

static void
take_message(struct worker *worker, const rd_kafka_message_t *message)
{
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        switch (work_take(&worker->work, message, &error)) {
        case WORK_TAKEN:
                return;
        case WORK_GAP:
                log_info("reading again partition=%d offset=%" PRId64 " reason=%s", message->partition,
                         message->offset, log_quote(error.text, quoted));
                if (worker->work.is_open)
                        commit(worker);
                worker->positioned = 0;
                return;
        case WORK_FAILED:
                recover(worker, error.text);
                clock_sleep_ms(PAUSE_MS);
                return;
        case WORK_REFUSED:
                refuse(worker, error.text);
                return;
        }
}

/* The consumer has failed for good: the next round makes another, and all goes on from what was committed. */
static void
replace_consumer(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (note_trouble(worker, reason))
                log_warning("the consumer failed and is replaced reason=%s", log_quote(reason, quoted));
        recover(worker, NULL);
        pulse_wait(&worker->status->pulse);
        member_leave(&worker->member);
        set_state(worker, WORKER_STARTING);
        clock_sleep_ms(REPLACE_PAUSE_MS);
}

/* Take what the poll gave. Returns whether the batch is to be committed now. */
static int
take(struct worker *worker, enum consumer_result result, rd_kafka_message_t *message,
     const struct error *error)
{
        switch (result) {
        case CONSUMER_MESSAGE:
                crash_point("after-poll");
                if (worker->positioned)
                        take_message(worker, message);
                rd_kafka_message_destroy(message);
                return work_is_full(&worker->work);
        case CONSUMER_NOTHING:
                return worker->work.is_open;
        case CONSUMER_LOST:
                recover(worker, error->text);
                clock_sleep_ms(PAUSE_MS);
                return 0;
        case CONSUMER_FENCED:
                if (member_note_fenced(&worker->member))
                        refuse(worker,
                               "another router has the same `instance`, in [gatepost]; give each its own");
                replace_consumer(worker, error->text);
                return 0;
        case CONSUMER_BROKEN:
                replace_consumer(worker, error->text);
                return 0;
        }
        return 0;
}

/* What others see of the worker: that it lives, and now and then its tables, its lag and its state. */
static void
report(struct worker *worker)
{
        struct partition_list *partitions = &worker->work.partitions;
        int64_t now = clock_monotonic_ms(), lag = 0, oldest_ms = 0;
        size_t remembered = 0;
        int restoring = 0;

        pulse_beat(&worker->status->pulse);
        if (atomic_exchange(&worker->status->is_asked, 0))
                standing_log(partitions, worker->member.consumer, worker->config->deliveries_topic);
        if (now - worker->reported_ms < REPORT_INTERVAL_MS)
                return;
        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = &partitions->items[i];

                remembered += partition->dedup == NULL ? 0 : dedup_size(partition->dedup);
                restoring |= partition->next < partition->decide_from;
                if (worker->member.consumer != NULL) {
                        int64_t waiting = incoming_lag(worker->member.consumer,
                                                       worker->config->deliveries_topic, partition);
                        int64_t age_ms = partition_waiting_ms(partition, waiting, clock_now_ms());

                        lag += waiting;
                        oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
                }
        }
        metrics_set_router(worker->work.metrics, remembered, (uint64_t)lag, (uint64_t)oldest_ms);
        worker->reported_ms = now;
        if (lag == 0 && !worker->work.is_open && now - worker->troubled_ms >= TROUBLED_FOR_MS)
                worker->troubled = 0;
        if (worker->positioned && !restoring && !worker->troubled)
                set_state(worker, WORKER_ROUTING);
}

/* Make what deciding needs, as far as that is possible now. */
static void
prepare(struct worker *worker)
{
        if (prepare_work(worker) == 0 && worker->member.assigned != NULL && !worker->positioned)
                (void)prepare_position(worker);
}

/*
 * One round: one record, or the end of a batch. The consumer is polled in each, whatever else is to be waited for: a member
 * that does not poll holds up its group, and is put out of it in the end.
 */
static void
step(struct worker *worker)
{
        rd_kafka_message_t *message = NULL;
        struct error error;
        enum consumer_result result;

        report(worker);
        work_renew(&worker->work);
        if (prepare_member(worker) != 0)
                return;
        prepare(worker);
        if (worker->exit_status != 0)
                return;
        result = consumer_poll(worker->member.consumer, worker->work.is_open ? 0 : POLL_MS, &message, &error);
        if (worker->member.has_changed) {
                /* What is open is no longer ours to commit. */
                worker->member.has_changed = 0;
                worker->positioned = 0;
                set_state(worker, WORKER_RESTORING);
                if (worker->work.is_open)
                        recover(worker, NULL);
        }
        if (take(worker, result, message, &error))
                commit(worker);
}

int
worker_run(struct current *current, const char *bootstrap, struct metrics *metrics,
           struct worker_status *status)
{
        const struct config *config = current_first(current);
        struct worker worker = {.config = config,
                                .status = status,
                                .member = {.config = config, .bootstrap = bootstrap, .metrics = metrics}};
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        if (work_open(&worker.work, current, bootstrap, metrics, &error) != 0) {
                log_error("the router does not start reason=%s", log_quote(error.text, quoted));
                worker.exit_status = EX_SOFTWARE;
        }
        while (worker.exit_status == 0 && !atomic_load(&status->stopping))
                step(&worker);
        pulse_wait(&status->pulse);
        if (worker.work.is_open && worker.positioned && worker.exit_status == 0)
                commit(&worker);
        work_close(&worker.work);
        member_leave(&worker.member);
        return worker.exit_status;
}
