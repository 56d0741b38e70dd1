#include "kafka/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/client.h"
#include "kafka/fetch_ahead.h"

#define LOOK_EVERY_MS 10000 /* for added partitions */
#define LOOK_TIMEOUT_MS 1000
#define STALL_MS 60000

struct reader {
        rd_kafka_t *client;
        struct fetch_ahead ahead;
        rd_kafka_topic_partition_list_t *partitions;
        int n_at_end; /* of the partitions with an end */
        int64_t
            *ends; /* of the first n_ends of partitions, where to stop; INT64_MAX: at the end that is met */
        int n_ends;
        rd_kafka_resp_err_t failure; /* the failure that ends all reading */
        struct error reason;
        struct error notice; /* of this poll; empty: none */
        int64_t progress_ms; /* monotonic: when the last record or end of a partition came */
        int64_t look_ms;     /* monotonic: last look for added partitions */
};

static int
add_topic(struct reader *reader, const struct rd_kafka_metadata *metadata, const char *topic, int64_t offset,
          int timeout_ms, struct error *error)
{
        for (int t = 0; t < metadata->topic_cnt; t++) {
                if (strcmp(metadata->topics[t].topic, topic) != 0 || metadata->topics[t].partition_cnt == 0)
                        continue;
                for (int p = 0; p < metadata->topics[t].partition_cnt; p++) {
                        if (rd_kafka_topic_partition_list_find(reader->partitions, topic, p) == NULL)
                                rd_kafka_topic_partition_list_add(reader->partitions, topic, p)->offset =
                                    offset;
                }
                return 0;
        }
        if (client_is_hidden(reader->client, topic, timeout_ms))
                return error_set(
                    error,
                    "the topic %s: the account may not read it; KAFKA ACCOUNTS in gatepost-guide(7) has one "
                    "that may",
                    topic);
        return error_set(error, "the topic %s is missing; create it: gatepost topics create", topic);
}

/* Return the initial offset in the list: an end of the log, or a time to be replaced by find_times(). */
static int64_t
first_offset(int64_t from_ms)
{
        return from_ms == READER_FROM_BEGINNING ? RD_KAFKA_OFFSET_BEGINNING
               : from_ms == READER_FROM_END     ? RD_KAFKA_OFFSET_END
                                                : from_ms;
}

/* Replace times by the offsets of the first records from then on, or by the end of the log. */
static int
find_times(struct reader *reader, int timeout_ms, struct error *error)
{
        rd_kafka_resp_err_t err = client_query_times(reader->client, reader->partitions, timeout_ms);

        return err == RD_KAFKA_RESP_ERR_NO_ERROR
                   ? 0
                   : error_set(error, "cannot find the offsets of the time: %s", rd_kafka_err2str(err));
}

/* Return an end of a partition's log, or a value if the leader does not report it within a second. */
static int64_t
ask_for_end(const struct reader *reader, const char *topic, int32_t partition, int64_t end, int64_t otherwise)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t offset = otherwise;

        (void)rd_kafka_topic_partition_list_add(list, topic, partition);
        if (client_query_ends(reader->client, list, end, LOOK_TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR)
                offset = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        return offset;
}

/* Query the ends before reading begins: a query does not have to wait behind a fetch from the same broker. */
static void
ask_for_ends(struct reader *reader)
{
        reader->n_ends = reader->partitions->cnt;
        reader->ends = mem_alloc((size_t)reader->n_ends * sizeof(*reader->ends));
        for (int i = 0; i < reader->n_ends; i++) {
                const rd_kafka_topic_partition_t *item = &reader->partitions->elems[i];

                reader->ends[i] =
                    ask_for_end(reader, item->topic, item->partition, RD_KAFKA_OFFSET_END, INT64_MAX);
        }
}

static int
assign(struct reader *reader, const struct reader_wish *wish, int timeout_ms, struct error *error)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err = rd_kafka_metadata(reader->client, 1, NULL, &metadata, timeout_ms);
        int result = 0;

        (void)rd_kafka_poll(reader->client, 0);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return client_unreachable(reader->client, err, error);
        for (size_t i = 0; i < wish->n_topics && result == 0; i++)
                result = add_topic(reader, metadata, wish->topics[i], first_offset(wish->from_ms), timeout_ms,
                                   error);
        rd_kafka_metadata_destroy(metadata);
        if (result == 0 && wish->stops_at_ends)
                ask_for_ends(reader);
        if (result == 0 && first_offset(wish->from_ms) == wish->from_ms)
                result = find_times(reader, timeout_ms, error);
        if (result == 0) {
                err = rd_kafka_assign(reader->client, reader->partitions);
                if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                        result = error_set(error, "assign: %s", rd_kafka_err2str(err));
        }
        return result;
}

struct reader *
reader_new(const struct config *config, const char *bootstrap, const struct reader_wish *wish, int timeout_ms,
           struct error *error)
{
        struct reader *reader = mem_alloc(sizeof(*reader));

        reader->partitions = rd_kafka_topic_partition_list_new((int)wish->n_topics);
        reader->progress_ms = reader->look_ms = clock_monotonic_ms();
        reader->client = client_new_reader(config, bootstrap, error);
        if (reader->client == NULL || assign(reader, wish, timeout_ms, error) != 0) {
                reader_free(reader);
                return NULL;
        }
        fetch_ahead_init(&reader->ahead, config, reader->client);
        return reader;
}

void
reader_free(struct reader *reader)
{
        if (reader == NULL)
                return;
        if (reader->client != NULL)
                (void)client_destroy(reader->client); /* it has no callbacks */
        rd_kafka_topic_partition_list_destroy(reader->partitions);
        free(reader->ends);
        free(reader);
}

/* Read a partition from its beginning, unless it is being read already. */
static void
add_partition(struct reader *reader, const char *topic, int32_t partition,
              rd_kafka_topic_partition_list_t *added)
{
        if (rd_kafka_topic_partition_list_find(reader->partitions, topic, partition) != NULL)
                return;
        rd_kafka_topic_partition_list_add(reader->partitions, topic, partition);
        rd_kafka_topic_partition_list_add(added, topic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
}

/* Look for added partitions. Failures show elsewhere. */
static void
look_for_partitions(struct reader *reader)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_partition_list_t *added;
        rd_kafka_error_t *error;

        if (clock_monotonic_ms() - reader->look_ms < LOOK_EVERY_MS)
                return;
        if (rd_kafka_metadata(reader->client, 0, NULL, &metadata, LOOK_TIMEOUT_MS) ==
            RD_KAFKA_RESP_ERR_NO_ERROR) {
                added = rd_kafka_topic_partition_list_new(1);
                for (int t = 0; t < metadata->topic_cnt; t++) {
                        for (int p = 0; p < metadata->topics[t].partition_cnt; p++)
                                add_partition(reader, metadata->topics[t].topic, p, added);
                }
                error = added->cnt == 0 ? NULL : rd_kafka_incremental_assign(reader->client, added);
                if (error != NULL)
                        (void)error_set(&reader->notice, "%d added partitions cannot be read: %s", added->cnt,
                                        rd_kafka_error_string(error));
                rd_kafka_error_destroy(error);
                rd_kafka_topic_partition_list_destroy(added);
                rd_kafka_metadata_destroy(metadata);
        }
        reader->look_ms = clock_monotonic_ms();
}

/*
 * The next record of a partition was deleted: note that, and continue at the first record that is left.
 * librdkafka 2.0.2 has given up the partition by then and cannot seek in it, so assign it again.
 */
static void
skip_deleted(struct reader *reader, const rd_kafka_message_t *message)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        const char *topic = rd_kafka_topic_name(message->rkt);
        int64_t low = ask_for_end(reader, topic, message->partition, RD_KAFKA_OFFSET_BEGINNING,
                                  RD_KAFKA_OFFSET_BEGINNING);
        rd_kafka_error_t *error;

        (void)error_set(&reader->notice, "%s, partition %d: records were deleted before they were shown",
                        topic, message->partition);
        rd_kafka_topic_partition_list_add(list, topic, message->partition)->offset = low;
        error = rd_kafka_incremental_unassign(reader->client, list);
        if (error == NULL)
                error = rd_kafka_incremental_assign(reader->client, list);
        if (error != NULL) {
                reader->failure = rd_kafka_error_code(error);
                (void)error_set(&reader->reason, "%s, partition %d: %s", topic, message->partition,
                                rd_kafka_error_string(error));
        }
        rd_kafka_error_destroy(error);
        rd_kafka_topic_partition_list_destroy(list);
}

/* Return the index of a message's partition in the list, or -1. */
static int
index_of(const struct reader *reader, const rd_kafka_message_t *message)
{
        const rd_kafka_topic_partition_t *item =
            rd_kafka_topic_partition_list_find(reader->partitions, rd_kafka_topic_name(message->rkt),
                                               message->partition);

        return item == NULL ? -1 : (int)(item - reader->partitions->elems);
}

/*
 * Note whether the end reached is the beginning of an open transaction. The known end of the log is from the
 * last fetch, which may have brought further records; so query whether the stable end is still the same.
 */
static void
note_open_transaction(struct reader *reader, const char *topic, int32_t partition, int64_t end)
{
        int64_t low, high = -1;

        (void)rd_kafka_get_watermark_offsets(reader->client, topic, partition, &low, &high);
        if (high > end && ask_for_end(reader, topic, partition, RD_KAFKA_OFFSET_END, INT64_MAX) <= end)
                (void)error_set(&reader->notice,
                                "%s, partition %d: a transaction is open; records since it began cannot "
                                "be read before it ends",
                                topic, partition);
}

/* The i-th partition has been read to an end; its opaque in the list marks that this was noted. */
static void
note_end(struct reader *reader, int i, int64_t end)
{
        rd_kafka_topic_partition_t *item = i < 0 ? NULL : &reader->partitions->elems[i];

        if (item == NULL || item->opaque != NULL)
                return;
        item->opaque = reader;
        if (i < reader->n_ends)
                reader->n_at_end++;
        reader->progress_ms = clock_monotonic_ms();
        note_open_transaction(reader, item->topic, item->partition, end);
}

/* Whether a record is before the end of its partition. Notes the end at the last record, or beyond it. */
static int
is_before_end(struct reader *reader, const rd_kafka_message_t *message)
{
        int i = index_of(reader, message);

        if (i < 0 || i >= reader->n_ends)
                return 1;
        if (message->offset + 1 >= reader->ends[i])
                note_end(reader, i, reader->ends[i]);
        return message->offset < reader->ends[i];
}

/*
 * Note an error that librdkafka does not retry. Missing permissions for the group do not matter: it is never
 * joined.
 */
static void
note_failure(struct reader *reader, const rd_kafka_message_t *message)
{
        switch (message->err) {
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        case RD_KAFKA_RESP_ERR__FATAL:
                reader->failure = message->err;
                (void)error_set(&reader->reason, "%s%s%s",
                                message->rkt == NULL ? "" : rd_kafka_topic_name(message->rkt),
                                message->rkt == NULL ? "" : ": ", rd_kafka_message_errstr(message));
                break;
        default:
                break;
        }
}

rd_kafka_message_t *
reader_poll(struct reader *reader, int timeout_ms)
{
        rd_kafka_message_t *message;

        reader->notice.text[0] = '\0';
        look_for_partitions(reader);
        message = rd_kafka_consumer_poll(reader->client, timeout_ms);
        if (message == NULL)
                return NULL;
        fetch_ahead_took(&reader->ahead, &message, 1);
        switch (message->err) {
        case RD_KAFKA_RESP_ERR_NO_ERROR:
                if (!is_before_end(reader, message))
                        break;
                reader->progress_ms = clock_monotonic_ms();
                return message;
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
                note_end(reader, index_of(reader, message), message->offset);
                break;
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
                skip_deleted(reader, message);
                break;
        default:
                note_failure(reader, message);
                break;
        }
        rd_kafka_message_destroy(message);
        return NULL;
}

int
reader_reached_ends(const struct reader *reader)
{
        return reader->n_at_end >= reader->n_ends;
}

const char *
reader_notice(const struct reader *reader)
{
        return reader->notice.text[0] == '\0' ? NULL : reader->notice.text;
}

int
reader_is_stalled(const struct reader *reader)
{
        return clock_monotonic_ms() - reader->progress_ms > STALL_MS;
}

const char *
reader_failure(const struct reader *reader, int *is_denied)
{
        if (reader->failure == RD_KAFKA_RESP_ERR_NO_ERROR)
                return NULL;
        *is_denied = client_is_denied(reader->failure);
        return reader->reason.text;
}
