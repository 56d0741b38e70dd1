#include "router/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "router/assignment.h"
#include "router/member.h"
#include "router/partition_status.h"
#include "router/processor.h"
#include "router/standby.h"
#include "router/table.h"
#include "router/topic_watch.h"

#define POLL_MS 100
#define POLL_SOON_MS 5 /* while waiting for an event that the consumer's queue does not signal */
#define PAUSE_MS 50
#define REPLACE_PAUSE_MS 1000
#define REPORT_INTERVAL_MS 200
#define REASON_SIZE 256
#define TROUBLED_FOR_MS \
        5000 /* with nothing to route, trouble is over after this time even without a commit */
#define LOG_AGAIN_MS 10000

/*
 * The router's loop. Before it can decide records it creates a consumer and a producer, and finds a position
 * for each partition (assignment.h). Any failure of a transaction discards the producer and all positions;
 * this is the only way of recovering. Trouble with one partition discards only its position.
 */
struct loop {
        const struct config *config;
        struct loop_status *status;
        struct member member;
        struct processor processor;
        struct assignment assignment;
        struct topic_watch watch;
        struct standby standby; /* all zeros if it is off */
        int troubled;           /* nothing was committed since a recovery, and records wait */
        int64_t troubled_ms;    /* monotonic time of that recovery */
        int64_t logged_ms;      /* of the last log line about trouble; 0: none since a commit */
        int exit_status;
        int64_t reported_ms;
        int is_lag_shown;              /* the last report said that records wait */
        char waiting_for[REASON_SIZE]; /* the reason for waiting that was last logged; empty: none */
};

static void
set_trouble(struct loop *loop, const char *reason)
{
        pthread_mutex_lock(&loop->status->mutex);
        (void)error_set(&loop->status->trouble, "%s", reason);
        pthread_mutex_unlock(&loop->status->mutex);
}

static void
set_state(struct loop *loop, enum loop_state state)
{
        atomic_store(&loop->status->state, state);
        if (state == LOOP_ROUTING)
                set_trouble(loop, "");
}

/* Note trouble that recurs as long as its cause lasts. Returns whether to log it. */
static int
note_trouble(struct loop *loop, const char *reason)
{
        int64_t now = clock_monotonic_ms();
        int is_due = loop->logged_ms == 0 || now - loop->logged_ms >= LOG_AGAIN_MS;

        set_trouble(loop, reason);
        loop->troubled = 1;
        loop->troubled_ms = now;
        if (is_due)
                loop->logged_ms = now;
        return is_due;
}

/* Log why the loop cannot continue now, if the reason is new. */
static void
wait_for(struct loop *loop, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        set_trouble(loop, reason);
        if (atomic_load(&loop->status->state) == LOOP_ROUTING)
                set_state(loop, LOOP_RESTORING);
        if (strncmp(loop->waiting_for, reason, REASON_SIZE - 1) == 0)
                return;
        (void)snprintf(loop->waiting_for, REASON_SIZE, "%s", reason);
        log_warning("the router is waiting reason=%s", log_quote(reason, quoted));
}

static void
refuse(struct loop *loop, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        log_error("cannot route reason=%s", log_quote(reason, quoted));
        loop->exit_status = EX_CONFIG;
}

/* Recover: abort the open transaction, and find all positions again from the committed offsets. */
static void
recover(struct loop *loop, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (reason != NULL && note_trouble(loop, reason))
                log_warning("transaction aborted; restarting from the committed offsets reason=%s",
                            log_quote(reason, quoted));
        heartbeat_wait(&loop->status->heartbeat);
        if (processor_has_old_brokers(&loop->processor))
                refuse(loop, reason == NULL ? "the brokers are too old" : reason);
        processor_abandon(&loop->processor);
        assignment_void_positions(&loop->assignment);
        set_state(loop, LOOP_RESTORING);
}

/* Returns 0 when the producer is ready, -1 to try again. */
static int
prepare_decider(struct loop *loop)
{
        struct error error;
        int result;

        heartbeat_wait(&loop->status->heartbeat);
        result = processor_prepare(&loop->processor, &error);
        heartbeat_beat(&loop->status->heartbeat);
        if (result == 0)
                return 0;
        wait_for(loop, error.text);
        if (result < 0) {
                recover(loop, NULL);
                clock_sleep_ms(PAUSE_MS);
        }
        return -1;
}

/* Returns 0 when there is a consumer, -1 to try again. */
static int
prepare_member(struct loop *loop)
{
        struct error error;

        if (member_prepare(&loop->member, &error) == 0)
                return 0;
        wait_for(loop, error.text);
        clock_sleep_ms(REPLACE_PAUSE_MS);
        return -1;
}

/* Publish the heartbeat, and from time to time the metrics and the state. */
static void
report(struct loop *loop)
{
        struct partition_status status;
        int64_t now = clock_monotonic_ms();

        heartbeat_beat(&loop->status->heartbeat);
        if (now - loop->reported_ms < REPORT_INTERVAL_MS)
                return;
        loop->reported_ms = now;
        topic_watch_report(&loop->watch, loop->member.consumer, &status);
        table_tend(loop->processor.state, &loop->processor.partitions, &loop->processor.followed);
        loop->is_lag_shown = status.lag > 0;
        if (status.lag == 0 && !loop->processor.is_open && now - loop->troubled_ms >= TROUBLED_FOR_MS)
                loop->troubled = 0;
        if (status.n > 0 && status.n_refused == status.n) {
                refuse(loop, status.reason.text);
        } else if (loop->member.assigned != NULL) {
                int is_routing = status.n_routing == status.n && status.n_unassigned == 0 && !loop->troubled;

                set_state(loop, is_routing ? LOOP_ROUTING : LOOP_RESTORING);
                if (!is_routing && !loop->troubled && status.reason.text[0] == '\0' && status.to_read > 0)
                        (void)error_set(&status.reason,
                                        "restoring the dedup table: %" PRIu64 " deliveries to read",
                                        status.to_read);
                if (!is_routing && !loop->troubled)
                        set_trouble(loop, status.reason.text);
        }
}

/* Commit the open batch, or recover. */
static void
commit(struct loop *loop)
{
        struct error error;

        /* A commit may take seconds: what waits for it must be shown meanwhile. */
        if (!loop->is_lag_shown) {
                loop->reported_ms = 0;
                report(loop);
        }
        heartbeat_wait(&loop->status->heartbeat);
        if (processor_commit(&loop->processor, &error) == 0) {
                loop->troubled = 0;
                loop->logged_ms = 0;
                loop->waiting_for[0] = '\0';
                return;
        }
        recover(loop, error.text);
        clock_sleep_ms(PAUSE_MS);
}

/*
 * Apply a newer configuration. A batch is decided by the configuration that was the newest at its first
 * record.
 */
static void
reload(struct loop *loop)
{
        if (loop->processor.is_open && processor_is_outdated(&loop->processor))
                commit(loop);
        processor_reload(&loop->processor);
}

static void
take_message(struct loop *loop, rd_kafka_message_t *message)
{
        const struct consumer_origin origin = consumer_origin(loop->member.consumer, message);
        struct error error;

        reload(loop);
        switch (processor_take(&loop->processor, &loop->processor.partitions, message, &origin, &error)) {
        case PROCESSOR_DONE:
                return;
        case PROCESSOR_UNPOSITIONED:
                loop->assignment.is_stale = 1;
                if (loop->processor.is_open)
                        commit(loop); /* the position depends on this commit */
                return;
        case PROCESSOR_FAILED:
                recover(loop, error.text);
                clock_sleep_ms(PAUSE_MS);
                return;
        }
}

/*
 * The consumer has failed for good: the next iteration creates another, which starts from the committed
 * offsets.
 */
static void
replace_consumer(struct loop *loop, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (note_trouble(loop, reason))
                log_warning("the consumer failed and is replaced reason=%s", log_quote(reason, quoted));
        recover(loop, NULL);
        heartbeat_wait(&loop->status->heartbeat);
        member_leave(&loop->member);
        set_state(loop, LOOP_STARTING);
        clock_sleep_ms(REPLACE_PAUSE_MS);
}

static void
end_scans(struct loop *loop)
{
        if (loop->processor.is_scanning)
                loop->processor.is_scanning = assignment_end_scans(&loop->assignment, loop->member.consumer);
}

/* Handle what the poll returned. Returns whether the batch is to be committed now. */
static int
take(struct loop *loop, enum consumer_result result, rd_kafka_message_t *message, int32_t partition,
     const struct error *error)
{
        switch (result) {
        case CONSUMER_MESSAGE:
                crash_point("after-poll");
                take_message(loop, message);
                end_scans(loop);
                return processor_is_full(&loop->processor);
        case CONSUMER_END:
                partition_list_note_end(&loop->processor.partitions, message->partition, message->offset);
                rd_kafka_message_destroy(message);
                end_scans(loop);
                return 0;
        case CONSUMER_NOTHING:
                loop->processor.partitions.emptied_ms = clock_monotonic_ms();
                end_scans(loop);
                return loop->processor.is_open;
        case CONSUMER_TROUBLE:
                if (loop->member.assigned == NULL)
                        wait_for(loop, error->text);
                return 0;
        case CONSUMER_LOST:
                assignment_lose_position(&loop->assignment, partition, error->text);
                return loop->processor.is_open;
        case CONSUMER_FENCED:
                if (member_note_fenced(&loop->member))
                        refuse(loop,
                               "another router has the same `instance`, in [gatepost]; give each its own");
                replace_consumer(loop, error->text);
                return 0;
        case CONSUMER_BROKEN:
                replace_consumer(loop, error->text);
                return 0;
        }
        return 0;
}

/* The assigned partitions have changed. The open batch must not be committed any more. */
static void
on_change(struct loop *loop)
{
        loop->member.has_changed = 0;
        set_state(loop, LOOP_RESTORING);
        if (loop->processor.is_open)
                recover(loop, NULL);
        assignment_void_positions(&loop->assignment);
        if (loop->member.assigned == NULL)
                return;
        processor_note_membership(&loop->processor, consumer_client(loop->member.consumer));
        if (assignment_set(&loop->assignment, loop->member.assigned,
                           loop->config->standby ? &loop->processor.followed : NULL) != 0)
                loop->member.has_changed = 1; /* out of memory: try again */
        standby_note_change(&loop->standby);
}

/* Between two batches: read some records of the partitions that other routers have. */
static void
follow(struct loop *loop)
{
        loop->standby.has_more = 0;
        if (!loop->config->standby || loop->processor.is_open || loop->member.assigned == NULL ||
            loop->assignment.restoring >= 0)
                return;
        heartbeat_wait(&loop->status->heartbeat);
        standby_step(&loop->standby, loop->watch.n_partitions);
        heartbeat_beat(&loop->status->heartbeat);
}

/* Return how long to wait for the next record, in milliseconds. */
static int
patience_ms(const struct loop *loop)
{
        if (loop->processor.is_open || loop->standby.has_more)
                return 0;
        return assignment_is_awaited(&loop->assignment) || loop->processor.is_scanning ||
                       (loop->config->standby && standby_is_busy(&loop->standby))
                   ? POLL_SOON_MS
                   : POLL_MS;
}

/* What is to be done before records are polled. Returns 0, or -1 if none can be. */
static int
prepare(struct loop *loop)
{
        report(loop);
        reload(loop);
        if (loop->exit_status != 0 || prepare_member(loop) != 0)
                return -1;
        if (prepare_decider(loop) == 0 && loop->member.assigned != NULL) {
                heartbeat_wait(&loop->status->heartbeat); /* for the files of the state */
                assignment_start_reading(&loop->assignment, loop->member.consumer);
                heartbeat_beat(&loop->status->heartbeat);
        }
        if (loop->exit_status != 0)
                return -1;
        follow(loop);
        return 0;
}

/* Whether the next record of the open batch was polled with earlier ones, and nothing has happened since. */
static int
is_prepared(const struct loop *loop)
{
        return loop->processor.is_open && !loop->assignment.is_stale &&
               !processor_is_outdated(&loop->processor) && loop->member.consumer != NULL &&
               consumer_has_polled(loop->member.consumer);
}

/*
 * One iteration: one record, or the end of a batch. Each polls the consumer, even while waiting for other
 * events: a member that does not poll delays its group, and is removed from it eventually.
 */
static void
step(struct loop *loop)
{
        rd_kafka_message_t *message = NULL;
        int32_t partition = -1;
        struct error error;
        enum consumer_result result;

        if (!is_prepared(loop) && prepare(loop) != 0)
                return;
        result = consumer_poll(loop->member.consumer, patience_ms(loop), &message, &partition, &error);
        if (loop->member.has_changed)
                on_change(loop);
        if (take(loop, result, message, partition, &error) && loop->processor.is_open)
                commit(loop);
}

int
loop_run(struct current *current, const char *bootstrap, struct metrics *metrics, struct loop_status *status)
{
        const struct config *config = current_first(current);
        struct loop loop = {.config = config,
                            .status = status,
                            .member = {.config = config, .bootstrap = bootstrap, .metrics = metrics}};
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        if (processor_open(&loop.processor, current, bootstrap, metrics, &error) != 0 ||
            assignment_open(&loop.assignment, config, bootstrap, &loop.processor.partitions,
                            loop.processor.state, metrics, &error) != 0 ||
            (config->standby &&
             standby_open(&loop.standby, config, bootstrap, &loop.processor, &error) != 0)) {
                log_error("cannot start the router reason=%s", log_quote(error.text, quoted));
                loop.exit_status = EX_OSERR;
        }
        loop.watch = (struct topic_watch){.config = config,
                                          .finder = loop.assignment.finder,
                                          .processor = &loop.processor,
                                          .n_partitions = -1};
        while (loop.exit_status == 0 && !atomic_load(&status->stopping))
                step(&loop);
        heartbeat_wait(&status->heartbeat);
        if (loop.processor.is_open && loop.exit_status == 0)
                commit(&loop);
        assignment_close(&loop.assignment);
        standby_close(&loop.standby);
        processor_close(&loop.processor);
        member_leave(&loop.member);
        return loop.exit_status;
}
