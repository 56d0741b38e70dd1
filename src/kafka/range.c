#include "kafka/range.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/client.h"
#include "kafka/fetch_ahead.h"
#include "kafka/outage.h"

#define BATCH 1000
#define POLL_MS 200

/* Longer than a router's transaction may live (30 s) plus the time until its coordinator notices (10 s). */
#define STALL_MS 60000

struct range_reading {
        rd_kafka_t *client;
        struct fetch_ahead ahead;
        struct range *ranges;
        size_t n;
        size_t n_left; /* ranges that are not done */
        size_t last;   /* index of the last record's range; the next record is usually from the same one */
        range_record *on_record;
        void *arg;
        int64_t
            progress_ms; /* monotonic: when the last record or end of a partition came; errors do not count */
        struct error *error;
};

/* Return the index of a message's range; n if that range is not being read. */
static size_t
find(const struct range_reading *reading, const rd_kafka_message_t *message)
{
        const char *topic = rd_kafka_topic_name(message->rkt);

        for (size_t k = 0; k < reading->n; k++) {
                size_t i = (reading->last + k) % reading->n;
                const struct range *range = &reading->ranges[i];

                if (range->partition == message->partition && strcmp(range->topic, topic) == 0)
                        return range->is_done ? reading->n : i;
        }
        return reading->n;
}

static void
end_range(struct range_reading *reading, size_t index)
{
        struct range *range = &reading->ranges[index];
        rd_kafka_topic_partition_list_t *list;

        if (range->is_done)
                return;
        range->is_done = 1;
        reading->n_left--;
        /* Do not fetch further records. */
        list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, range->topic, range->partition);
        (void)rd_kafka_pause_partitions(reading->client, list);
        rd_kafka_topic_partition_list_destroy(list);
}

static enum range_result
take_record(struct range_reading *reading, const rd_kafka_message_t *message, size_t index)
{
        struct range *range = &reading->ranges[index];
        enum range_answer answer = RANGE_ENOUGH;

        range->is_at_end = 0;
        reading->last = index;
        reading->progress_ms = clock_monotonic_ms();
        if (message->offset < range->to)
                answer = reading->on_record(message, index, reading->error, reading->arg);
        if (answer == RANGE_FAIL)
                return RANGE_FAILED;
        if (answer == RANGE_ENOUGH || message->offset + 1 >= range->to)
                end_range(reading, index);
        return RANGE_DONE;
}

static enum range_result
take_error(struct range_reading *reading, const rd_kafka_message_t *message)
{
        size_t index;

        switch (message->err) {
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
                index = find(reading, message);
                if (index < reading->n) {
                        reading->ranges[index].is_at_end = 1;
                        reading->progress_ms = clock_monotonic_ms();
                }
                if (index < reading->n && message->offset >= reading->ranges[index].to)
                        end_range(reading, index);
                return RANGE_DONE;
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
        case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
                (void)error_set(reading->error, "records of %s were deleted while they were to be read",
                                message->rkt == NULL ? "a topic" : rd_kafka_topic_name(message->rkt));
                return RANGE_DELETED;
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
                (void)error_set(reading->error, "%s", rd_kafka_message_errstr(message));
                return RANGE_DENIED;
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        case RD_KAFKA_RESP_ERR__BAD_MSG:
        case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
        case RD_KAFKA_RESP_ERR__FATAL:
                (void)error_set(reading->error, "%s", rd_kafka_message_errstr(message));
                return RANGE_AWAY;
        default:
                return RANGE_DONE; /* librdkafka retries, or it is about the group, which is never joined */
        }
}

static enum range_result
take(struct range_reading *reading, const rd_kafka_message_t *message)
{
        size_t index;

        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return take_error(reading, message);
        index = find(reading, message);
        return index < reading->n ? take_record(reading, message, index) : RANGE_DONE;
}

/* Nothing has come for too long: report why. */
static enum range_result
give_up(struct range_reading *reading)
{
        size_t i = 0;
        char what[64];

        while (reading->ranges[i].is_done)
                i++;
        if (!reading->ranges[i].is_at_end) {
                (void)rd_kafka_poll(reading->client, 0);
                (void)snprintf(what, sizeof(what), "Kafka has not answered for %d seconds", STALL_MS / 1000);
                (void)outage_describe(what, reading->error->text, sizeof(reading->error->text));
                return RANGE_AWAY;
        }
        (void)error_set(reading->error,
                        "partition %d of %s has a transaction that stays open before offset %" PRId64,
                        reading->ranges[i].partition, reading->ranges[i].topic, reading->ranges[i].to);
        return RANGE_OPEN_TRANSACTION;
}

/*
 * Take a batch of the records that have come, at least one within POLL_MS. A batch costs a third of single
 * records, but waits until it is full unless its timeout is 0. Returns the number of records.
 */
static size_t
next_batch(struct range_reading *reading, rd_kafka_queue_t *queue, rd_kafka_message_t *messages[BATCH])
{
        ssize_t n = rd_kafka_consume_batch_queue(queue, 0, messages, BATCH);

        if (n <= 0)
                n = rd_kafka_consume_batch_queue(queue, POLL_MS, messages, 1);
        if (n <= 0)
                return 0;
        fetch_ahead_took(&reading->ahead, messages, (size_t)n);
        return (size_t)n;
}

static enum range_result
read_all(struct range_reading *reading, rd_kafka_queue_t *queue)
{
        rd_kafka_message_t *messages[BATCH];
        enum range_result result = RANGE_DONE;

        while (reading->n_left > 0 && result == RANGE_DONE) {
                size_t n = next_batch(reading, queue, messages);

                for (size_t i = 0; i < n; i++) {
                        if (result == RANGE_DONE)
                                result = take(reading, messages[i]);
                        rd_kafka_message_destroy(messages[i]);
                }
                if (result == RANGE_DONE && reading->n_left > 0 &&
                    clock_monotonic_ms() - reading->progress_ms > STALL_MS)
                        result = give_up(reading);
        }
        return result;
}

/* List the ranges that are not empty. */
static rd_kafka_topic_partition_list_t *
list_ranges(struct range_reading *reading)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)reading->n);

        for (size_t i = 0; i < reading->n; i++) {
                struct range *range = &reading->ranges[i];

                range->is_done = range->from >= range->to;
                range->is_at_end = 0;
                if (range->is_done)
                        continue;
                rd_kafka_topic_partition_list_add(list, range->topic, range->partition)->offset = range->from;
                reading->n_left++;
        }
        return list;
}

static enum range_result
assign_and_read(struct range_reading *reading)
{
        rd_kafka_topic_partition_list_t *list = list_ranges(reading);
        rd_kafka_resp_err_t err = rd_kafka_assign(reading->client, list);
        enum range_result result;
        rd_kafka_queue_t *queue;

        rd_kafka_topic_partition_list_destroy(list);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)error_set(reading->error, "assign: %s", rd_kafka_err2str(err));
                return RANGE_FAILED;
        }
        queue = rd_kafka_queue_get_consumer(reading->client);
        result = read_all(reading, queue);
        rd_kafka_queue_destroy(queue);
        (void)rd_kafka_consumer_close(reading->client);
        return result;
}

enum range_result
range_read(const struct config *config, const char *bootstrap, struct range *ranges, size_t n,
           range_record *on_record, void *arg, struct error *error)
{
        struct range_reading reading = {
            .ranges = ranges, .n = n, .on_record = on_record, .arg = arg, .error = error};
        enum range_result result;

        /* A new client each time: records it has prefetched cannot be mistaken for a later range's. */
        reading.client = client_new_reader(config, bootstrap, error);
        if (reading.client == NULL)
                return RANGE_FAILED;
        fetch_ahead_init(&reading.ahead, config, reading.client);
        reading.progress_ms = clock_monotonic_ms();
        result = assign_and_read(&reading);
        rd_kafka_destroy(reading.client);
        return result;
}

static enum range_answer
on_first(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        int64_t *first_ms = arg;
        rd_kafka_timestamp_type_t type;

        (void)error;
        first_ms[index] = rd_kafka_message_timestamp(message, &type);
        return RANGE_ENOUGH;
}

enum range_result
range_first(const struct config *config, const char *bootstrap, const struct range *ranges, size_t n,
            int64_t *first_ms, struct error *error)
{
        struct range *cut = mem_alloc(n * sizeof(*cut));
        enum range_result result;

        memcpy(cut, ranges, n * sizeof(*cut));
        for (size_t i = 0; i < n; i++)
                first_ms[i] = RANGE_KEPT_NOTHING;
        result = range_read(config, bootstrap, cut, n, on_first, first_ms, error);
        free(cut);
        return result;
}
