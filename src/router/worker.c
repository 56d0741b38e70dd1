#include "router/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/mem.h"
#include "router/member.h"
#include "router/partition_status.h"
#include "router/placement.h"
#include "router/work.h"

#define POLL_MS 100
#define POLL_SOON_MS 5 /* while something is awaited that the consumer's queue does not announce */
#define PAUSE_MS 50
#define REPLACE_PAUSE_MS 1000
#define REPORT_INTERVAL_MS 200
#define REASON_SIZE 256
#define TROUBLED_FOR_MS 5000 /* after which, when nothing waits, trouble without a commit counts as over */
#define LOG_AGAIN_MS 10000

/*
 * The worker's loop. What it needs before it can decide a record it makes first: a consumer, a producer that is ready, and
 * for each partition a position (placement.h). Any failure of a transaction throws the producer and all positions away;
 * that is the one way of recovering. What concerns one partition only takes its position away.
 */
struct worker {
        const struct config *config;
        struct worker_status *status;
        struct member member;
        struct work work;
        struct placement placement;
        int troubled;        /* since a recovery nothing was committed, and something waits */
        int64_t troubled_ms; /* monotonic time of that recovery */
        int64_t logged_ms;   /* of the last line about trouble; 0: none since a commit */
        int exit_status;
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

/* Note trouble that recurs as long as its cause lasts. Returns whether to log it. */
static int
note_trouble(struct worker *worker, const char *reason)
{
        int64_t now = clock_monotonic_ms();
        int is_due = worker->logged_ms == 0 || now - worker->logged_ms >= LOG_AGAIN_MS;

        set_trouble(worker, reason);
        worker->troubled = 1;
        worker->troubled_ms = now;
        if (is_due)
                worker->logged_ms = now;
        return is_due;
}

/* Log why the worker cannot go on now, when that is news. */
static void
wait_for(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        set_trouble(worker, reason);
        if (atomic_load(&worker->status->state) == WORKER_ROUTING)
                set_state(worker, WORKER_RESTORING);
        if (strncmp(worker->waiting_for, reason, REASON_SIZE - 1) == 0)
                return;
        (void)snprintf(worker->waiting_for, REASON_SIZE, "%s", reason);
        log_warning("the router waits reason=%s", log_quote(reason, quoted));
}

static void
refuse(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        log_error("cannot route reason=%s", log_quote(reason, quoted));
        worker->exit_status = EX_CONFIG;
}

/* The one recovery: what was open is aborted, and all positions are taken anew from what was committed. */
static void
recover(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (reason != NULL && note_trouble(worker, reason))
                log_warning("transaction aborted, starting again from the committed offsets reason=%s",
                            log_quote(reason, quoted));
        heartbeat_wait(&worker->status->heartbeat);
        if (work_is_unfenced(&worker->work))
                refuse(worker, reason == NULL ? "the brokers are too old" : reason);
        work_give_up(&worker->work);
        placement_restart(&worker->placement);
        set_state(worker, WORKER_RESTORING);
}

/* Returns 0 when the producer is ready, -1 when to try again. */
static int
prepare_work(struct worker *worker)
{
        struct error error;
        int result;

        heartbeat_wait(&worker->status->heartbeat);
        result = work_prepare(&worker->work, &error);
        heartbeat_beat(&worker->status->heartbeat);
        if (result == 0)
                return 0;
        wait_for(worker, error.text);
        if (result < 0) {
                recover(worker, NULL);
                clock_sleep_ms(PAUSE_MS);
        }
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

        heartbeat_wait(&worker->status->heartbeat);
        if (work_commit(&worker->work, &error) == 0) {
                worker->troubled = 0;
                worker->logged_ms = 0;
                worker->waiting_for[0] = '\0';
                return;
        }
        recover(worker, error.text);
        clock_sleep_ms(PAUSE_MS);
}

/* A batch is decided by one configuration: the newest that there was when its first record was decided. */
static void
renew(struct worker *worker)
{
        if (worker->work.is_open && work_is_outdated(&worker->work))
                commit(worker);
        work_renew(&worker->work);
}

static void
take_message(struct worker *worker, const rd_kafka_message_t *message)
{
        const struct consumer_origin origin = consumer_origin(worker->member.consumer, message);
        struct error error;

        renew(worker);
        switch (work_take(&worker->work, message, &origin, &error)) {
        case WORK_TAKEN:
                return;
        case WORK_UNPLACED:
                worker->placement.is_stale = 1;
                if (worker->work.is_open)
                        commit(worker); /* the position depends on it */
                return;
        case WORK_FAILED:
                recover(worker, error.text);
                clock_sleep_ms(PAUSE_MS);
                return;
        }
}

/* The consumer has failed for good: the next round makes another, and all starts again from what was committed. */
static void
replace_consumer(struct worker *worker, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (note_trouble(worker, reason))
                log_warning("the consumer failed and is replaced reason=%s", log_quote(reason, quoted));
        recover(worker, NULL);
        heartbeat_wait(&worker->status->heartbeat);
        member_leave(&worker->member);
        set_state(worker, WORKER_STARTING);
        clock_sleep_ms(REPLACE_PAUSE_MS);
}

static void
end_scans(struct worker *worker)
{
        if (worker->work.is_scanning)
                worker->work.is_scanning = placement_end_scans(&worker->placement, worker->member.consumer);
}

/* Handle what the poll returned. Returns whether the batch is to be committed now. */
static int
take(struct worker *worker, enum consumer_result result, rd_kafka_message_t *message, int32_t partition,
     const struct error *error)
{
        switch (result) {
        case CONSUMER_MESSAGE:
                crash_point("after-poll");
                take_message(worker, message);
                rd_kafka_message_destroy(message);
                end_scans(worker);
                return work_is_full(&worker->work);
        case CONSUMER_END:
                work_note_end(&worker->work, message->partition, message->offset);
                rd_kafka_message_destroy(message);
                end_scans(worker);
                return 0;
        case CONSUMER_NOTHING:
                worker->placement.emptied_ms = clock_monotonic_ms();
                end_scans(worker);
                return worker->work.is_open;
        case CONSUMER_TROUBLE:
                if (worker->member.assigned == NULL)
                        wait_for(worker, error->text);
                return 0;
        case CONSUMER_LOST:
                placement_lose(&worker->placement, partition, error->text);
                return worker->work.is_open;
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

/* Publish the heartbeat, and now and then the metrics and the state. */
static void
report(struct worker *worker)
{
        struct partition_status status;
        int64_t now = clock_monotonic_ms();

        heartbeat_beat(&worker->status->heartbeat);
        if (atomic_exchange(&worker->status->is_asked, 0))
                partition_status_log(&worker->work.partitions, worker->member.consumer,
                                     worker->config->deliveries_topic);
        if (now - worker->reported_ms < REPORT_INTERVAL_MS)
                return;
        worker->reported_ms = now;
        placement_look(&worker->placement, worker->member.consumer, &status);
        if (status.lag == 0 && !worker->work.is_open && now - worker->troubled_ms >= TROUBLED_FOR_MS)
                worker->troubled = 0;
        if (status.n > 0 && status.n_refused == status.n) {
                refuse(worker, status.reason.text);
        } else if (worker->member.assigned != NULL) {
                int is_routing =
                    status.n_routing == status.n && status.n_unassigned == 0 && !worker->troubled;

                set_state(worker, is_routing ? WORKER_ROUTING : WORKER_RESTORING);
                if (!is_routing && !worker->troubled)
                        set_trouble(worker, status.reason.text);
        }
}

/* The partitions have changed. What is open is no longer ours to commit. */
static void
on_change(struct worker *worker)
{
        worker->member.has_changed = 0;
        set_state(worker, WORKER_RESTORING);
        if (worker->work.is_open)
                recover(worker, NULL);
        placement_restart(&worker->placement);
        if (worker->member.assigned == NULL)
                return;
        work_join(&worker->work, consumer_client(worker->member.consumer));
        if (placement_set(&worker->placement, worker->member.assigned) != 0)
                worker->member.has_changed = 1; /* memory has failed: try again */
}

/*
 * One round: one record, or the end of a batch. The consumer is polled in each, whatever else is awaited: a member that does
 * not poll holds up its group, and is removed from it in the end.
 */
static void
step(struct worker *worker)
{
        rd_kafka_message_t *message = NULL;
        int32_t partition = -1;
        struct error error;
        enum consumer_result result;
        int timeout_ms;

        report(worker);
        renew(worker);
        if (worker->exit_status != 0 || prepare_member(worker) != 0)
                return;
        if (prepare_work(worker) == 0 && worker->member.assigned != NULL)
                placement_place(&worker->placement, worker->member.consumer);
        if (worker->exit_status != 0)
                return;
        timeout_ms = worker->work.is_open                                                   ? 0
                     : placement_is_awaited(&worker->placement) || worker->work.is_scanning ? POLL_SOON_MS
                                                                                            : POLL_MS;
        result = consumer_poll(worker->member.consumer, timeout_ms, &message, &partition, &error);
        if (worker->member.has_changed)
                on_change(worker);
        if (take(worker, result, message, partition, &error) && worker->work.is_open)
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

        if (work_open(&worker.work, current, bootstrap, metrics, &error) != 0 ||
            placement_open(&worker.placement, config, bootstrap, &worker.work.partitions, metrics, &error) !=
                0) {
                log_error("the router does not start reason=%s", log_quote(error.text, quoted));
                worker.exit_status = EX_SOFTWARE;
        }
        while (worker.exit_status == 0 && !atomic_load(&status->stopping))
                step(&worker);
        heartbeat_wait(&status->heartbeat);
        if (worker.work.is_open && worker.exit_status == 0)
                commit(&worker);
        placement_close(&worker.placement);
        work_close(&worker.work);
        member_leave(&worker.member);
        return worker.exit_status;
}
