#include "router/standby.h"

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"

#define REST_MS 5000 /* between two rounds; that much must be read when a partition is taken over */
#define STEP_RECORDS 1000
#define STEP_MS 5
#define REPLACE_PAUSE_MS 10000

int
standby_open(struct standby *standby, const struct config *config, const char *bootstrap,
             struct processor *processor, struct error *error)
{
        *standby = (struct standby){.config = config,
                                    .bootstrap = bootstrap,
                                    .processor = processor,
                                    .n_partitions = -1};
        return assignment_open(&standby->assignment, config, bootstrap, &processor->followed,
                               processor->state, NULL, error);
}

void
standby_close(struct standby *standby)
{
        assignment_close(&standby->assignment);
        consumer_free(standby->consumer);
        standby->consumer = NULL;
}

void
standby_note_change(struct standby *standby)
{
        standby->n_partitions = -1;
        standby->assignment.is_stale = 1;
}

/* Follow all partitions of the topic that this router does not have, and no others. */
static void
choose_partitions(struct standby *standby, int32_t n_partitions)
{
        struct processor *processor = standby->processor;

        for (size_t i = processor->followed.n; i > 0; i--) {
                if (processor->followed.items[i - 1]->id >= n_partitions)
                        partition_remove(&processor->followed, processor->followed.items[i - 1]);
        }
        for (int32_t id = 0; id < n_partitions; id++) {
                struct partition *partition;

                if (partition_find(&processor->partitions, id) != NULL ||
                    partition_find(&processor->followed, id) != NULL)
                        continue;
                partition = partition_add(&processor->followed, id);
                if (partition == NULL)
                        return; /* the next step tries again */
                partition->is_followed = 1;
        }
        standby->n_partitions = n_partitions;
}

/* Returns whether there is a consumer. */
static int
prepare_consumer(struct standby *standby)
{
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        if (standby->consumer != NULL || clock_monotonic_ms() < standby->retry_ms)
                return standby->consumer != NULL;
        standby->consumer = consumer_new(standby->config, standby->bootstrap, NULL, NULL, &error);
        if (standby->consumer != NULL)
                return 1;
        standby->retry_ms = clock_monotonic_ms() + REPLACE_PAUSE_MS;
        log_warning("cannot follow the partitions of other routers reason=%s", log_quote(error.text, quoted));
        return 0;
}

/* The consumer has failed for good: create another one later. */
static void
drop_consumer(struct standby *standby, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        log_warning("following the partitions of other routers failed reason=%s", log_quote(reason, quoted));
        consumer_free(standby->consumer);
        standby->consumer = NULL;
        standby->retry_ms = clock_monotonic_ms() + REPLACE_PAUSE_MS;
        assignment_void_positions(&standby->assignment);
}

static void
take_message(struct standby *standby, rd_kafka_message_t *message)
{
        const struct consumer_origin origin = consumer_origin(standby->consumer, message);
        const int32_t id = message->partition;
        struct error error;

        switch (processor_take(standby->processor, &standby->processor->followed, message, &origin, &error)) {
        case PROCESSOR_DONE:
                return;
        case PROCESSOR_UNPOSITIONED:
                standby->assignment.is_stale = 1;
                return;
        case PROCESSOR_FAILED:
                assignment_lose_position(&standby->assignment, id, error.text);
                return;
        }
}

/* Handle what a poll returned. Returns whether there may be more. */
static int
take(struct standby *standby, enum consumer_result result, rd_kafka_message_t *message, int32_t partition,
     const struct error *error)
{
        switch (result) {
        case CONSUMER_MESSAGE:
                take_message(standby, message);
                return 1;
        case CONSUMER_END:
                partition_list_note_end(&standby->processor->followed, message->partition, message->offset);
                rd_kafka_message_destroy(message);
                return 1;
        case CONSUMER_LOST:
                assignment_lose_position(&standby->assignment, partition, error->text);
                return 1;
        case CONSUMER_NOTHING:
                standby->processor->followed.emptied_ms = clock_monotonic_ms();
                return 0;
        case CONSUMER_TROUBLE:
                return 0;
        case CONSUMER_FENCED:
        case CONSUMER_BROKEN:
                drop_consumer(standby, error->text);
                return 0;
        }
        return 0;
}

static void
read_some(struct standby *standby)
{
        int64_t until_ms = clock_monotonic_ms() + STEP_MS;
        int goes_on = 1;

        for (int i = 0; goes_on && i < STEP_RECORDS && clock_monotonic_ms() < until_ms; i++) {
                rd_kafka_message_t *message = NULL;
                int32_t partition = -1;
                struct error error;
                enum consumer_result result =
                    consumer_poll(standby->consumer, 0, &message, &partition, &error);

                goes_on = take(standby, result, message, partition, &error);
        }
        standby->has_more = goes_on;
        if (standby->consumer != NULL)
                (void)assignment_end_scans(&standby->assignment, standby->consumer);
}

/*
 * Let the partitions rest that are as far as their committed offsets, all until the same time: each new
 * position has the consumer fetch all partitions anew.
 */
static void
rest(struct standby *standby)
{
        const struct partition_list *followed = &standby->processor->followed;
        int64_t now_ms = clock_monotonic_ms();

        if (standby->round_ms <= now_ms)
                standby->round_ms = now_ms + (int64_t)crash_limit("GATEPOST_STANDBY_REST_MS", REST_MS);
        for (size_t i = 0; i < followed->n; i++) {
                struct partition *partition = followed->items[i];

                if (partition->stage != PARTITION_POSITIONED ||
                    (partition->next < partition->decide_from && !partition_is_at_end(partition)))
                        continue;
                partition_followed(partition);
                partition_void_position(partition, TROUBLE_NONE, NULL, standby->round_ms - now_ms, now_ms);
                standby->assignment.is_stale = 1; /* stop fetching it */
        }
}

void
standby_step(struct standby *standby, int32_t n_partitions)
{
        if (n_partitions >= 0 && n_partitions != standby->n_partitions)
                choose_partitions(standby, n_partitions);
        if (standby->processor->followed.n == 0 || !prepare_consumer(standby))
                return;
        assignment_start_reading(&standby->assignment, standby->consumer);
        read_some(standby);
        rest(standby);
}

int
standby_is_busy(const struct standby *standby)
{
        return assignment_is_awaited(&standby->assignment) || assignment_is_restoring(&standby->assignment);
}
