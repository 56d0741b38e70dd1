#include "router/position.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define TIMEOUT_MS 5000

/* What Kafka knows of a partition. */
struct bounds {
        int64_t low;       /* the first offset that is there */
        int64_t high;      /* the offset that the next record will have */
        int64_t committed; /* the offset to decide from */
        int64_t last_ms;   /* timestamp of the record before that; -1: not known */
};

int
position_add_offset(rd_kafka_topic_partition_list_t *offsets, const char *topic,
                    const struct partition *partition)
{
        rd_kafka_topic_partition_t *item = rd_kafka_topic_partition_list_add(offsets, topic, partition->id);
        char *metadata;

        if (asprintf(&metadata, "%" PRId64, partition->last_ms) < 0)
                return -1;
        item->offset = partition->next;
        item->metadata = metadata; /* released with the list */
        item->metadata_size = strlen(metadata);
        return 0;
}

/* The timestamp that position_add_offset() put there; -1 when somebody else wrote the offset. */
static int64_t
read_last_ms(const rd_kafka_topic_partition_t *item)
{
        char text[24];

        if (item->metadata == NULL || item->metadata_size == 0 || item->metadata_size >= sizeof(text))
                return -1;
        memcpy(text, item->metadata, item->metadata_size);
        text[item->metadata_size] = '\0';
        /* Some clients that write it back count its NUL as well. */
        return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' ? strtoll(text, NULL, 10) : -1;
}

/*
 * Nothing is committed. The log is new, then; one that has lost its beginning to retention had a router, whose offsets have
 * gone (brokers forget those of a group that nobody is in, after offsets.retention.minutes). It would all come out again.
 */
static enum position_result
judge_first(const rd_kafka_topic_partition_t *item, const struct bounds *bounds, struct error *error)
{
        if (bounds->low == 0)
                return POSITION_TAKEN;
        (void)error_set(
            error,
            "partition %d of %s begins at offset %" PRId64
            " and the group has no committed offset in it: it never had one, or it has expired. Set it by "
            "kafka-consumer-groups.sh --reset-offsets, --to-earliest to publish all that is there",
            item->partition, item->topic, bounds->low);
        return POSITION_REFUSED;
}

/* Hold the committed offset against what is there. */
static enum position_result
judge_committed(const rd_kafka_topic_partition_t *item, struct bounds *bounds, struct error *error)
{
        if (item->offset < 0) {
                bounds->committed = bounds->low; /* the group's first router: all that is there is new */
                return judge_first(item, bounds, error);
        }
        bounds->committed = item->offset;
        bounds->last_ms = read_last_ms(item);
        if (item->offset > bounds->high) {
                (void)error_set(error,
                                "partition %d of %s ends at offset %" PRId64 " but was routed up to %" PRId64
                                ": was the topic deleted and made anew? If so, reset the group: "
                                "kafka-consumer-groups.sh --reset-offsets --to-earliest",
                                item->partition, item->topic, bounds->high, item->offset);
                return POSITION_REFUSED;
        }
        if (item->offset < bounds->low) {
                log_error("records were deleted before they were routed: the retention is too short topic=%s "
                          "partition=%d "
                          "from=%" PRId64 " to=%" PRId64,
                          item->topic, item->partition, item->offset, bounds->low - 1);
                bounds->committed = bounds->low;
        }
        return POSITION_TAKEN;
}

static enum position_result
read_bounds(rd_kafka_t *client, const rd_kafka_topic_partition_t *item, struct bounds *bounds,
            struct error *error)
{
        rd_kafka_resp_err_t err = rd_kafka_query_watermark_offsets(client, item->topic, item->partition,
                                                                   &bounds->low, &bounds->high, TIMEOUT_MS);

        bounds->last_ms = -1;
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)error_set(error, "the ends of partition %d: %s", item->partition,
                                rd_kafka_err2str(err));
                return POSITION_RETRY;
        }
        return judge_committed(item, bounds, error);
}

/*
 * The first offset that must be read so that the table has all records from from_ms on; that is from the beginning on
 * when there is nothing older (from_ms becomes DEDUP_COMPLETE).
 */
static enum position_result
find_restore_start(rd_kafka_t *client, const rd_kafka_topic_partition_t *item, const struct bounds *bounds,
                   int64_t *from_ms, int64_t *start, struct error *error)
{
        rd_kafka_topic_partition_list_t *times = rd_kafka_topic_partition_list_new(1);
        rd_kafka_resp_err_t err;

        *start = bounds->low;
        rd_kafka_topic_partition_list_add(times, item->topic, item->partition)->offset = *from_ms;
        err = rd_kafka_offsets_for_times(client, times, TIMEOUT_MS);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                err = times->elems[0].err;
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR && times->elems[0].offset > *start)
                *start = times->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(times);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)error_set(error, "offsets by time: %s", rd_kafka_err2str(err));
                return POSITION_RETRY;
        }
        if (*start == bounds->low)
                *from_ms = DEDUP_COMPLETE;
        if (*start > bounds->committed)
                *start = bounds->committed;
        return POSITION_TAKEN;
}

/*
 * A new table for a partition, to be filled from an offset on: that from which the records at the committed offset and
 * later can be judged. All of the log when it is not known how old the record before the committed offset is.
 */
static enum position_result
begin_restore(const struct config *config, rd_kafka_t *client, const rd_kafka_topic_partition_t *item,
              const struct bounds *bounds, struct partition *partition, struct error *error)
{
        int64_t oldest_ms = partition->needed_ms < bounds->last_ms ? partition->needed_ms : bounds->last_ms;
        int64_t from_ms = dedup_restore_start(config->dedup_window_ms, oldest_ms), start = bounds->low;
        enum position_result result = POSITION_TAKEN;

        if (bounds->committed == bounds->low || bounds->last_ms < 0)
                from_ms = DEDUP_COMPLETE;
        else
                result = find_restore_start(client, item, bounds, &from_ms, &start, error);
        if (result != POSITION_TAKEN)
                return result;
        dedup_free(partition->dedup);
        partition->dedup = dedup_new(config->dedup_window_ms, from_ms);
        if (partition->dedup == NULL) {
                (void)error_set(error, "out of memory");
                return POSITION_RETRY;
        }
        partition->next = start;
        partition->expired_from = bounds->committed;
        log_info("partition given partition=%d committed=%" PRId64 " remembering_from=%" PRId64,
                 item->partition, bounds->committed, start);
        return POSITION_TAKEN;
}

/* Take the position in one partition, and write it into the item. */
static enum position_result
take_one(const struct config *config, rd_kafka_t *client, rd_kafka_topic_partition_t *item,
         struct partition_list *partitions, struct error *error)
{
        struct partition *partition = partition_find(partitions, item->partition);
        struct bounds bounds;
        enum position_result result = read_bounds(client, item, &bounds, error);

        if (result != POSITION_TAKEN)
                return result;
        if (partition == NULL)
                partition = partition_add(partitions, item->partition);
        if (partition == NULL) {
                (void)error_set(error, "out of memory");
                return POSITION_RETRY;
        }
        /*
         * A table serves on if nothing that it forgot is needed, and what it lacks is still there to be read. It may know
         * records beyond the committed offset: that does no harm.
         */
        if (partition->dedup == NULL || bounds.committed < partition->expired_from ||
            partition->next < bounds.low || !dedup_covers(partition->dedup, partition->needed_ms))
                result = begin_restore(config, client, item, &bounds, partition, error);
        if (result != POSITION_TAKEN)
                return result;
        if (partition->next > bounds.committed)
                partition->next = bounds.committed;
        partition->decide_from = bounds.committed;
        partition->routed_ms = bounds.last_ms;
        item->offset = partition->next;
        return POSITION_TAKEN;
}

static void
forget_others(const rd_kafka_topic_partition_list_t *assigned, struct partition_list *partitions)
{
        for (size_t i = partitions->n; i > 0; i--) {
                struct partition *partition = &partitions->items[i - 1];
                int kept = 0;

                for (int k = 0; k < assigned->cnt; k++)
                        kept |= assigned->elems[k].partition == partition->id;
                if (!kept)
                        partition_remove(partitions, partition);
        }
}

/* The group's committed offsets, pending ones waited for (read_committed asks for stable offsets, KIP-447). */
static enum position_result
fetch_committed(rd_kafka_t *client, rd_kafka_topic_partition_list_t *list, struct error *error)
{
        rd_kafka_resp_err_t err =
            list->cnt == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_committed(client, list, TIMEOUT_MS);

        for (int i = 0; i < list->cnt && err == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
                err = list->elems[i].err;
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return POSITION_TAKEN;
        (void)error_set(error, "committed offsets: %s", rd_kafka_err2str(err));
        return POSITION_RETRY;
}

enum position_result
position_take(const struct config *config, struct consumer *consumer,
              const rd_kafka_topic_partition_list_t *assigned, struct partition_list *partitions,
              struct error *error)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(assigned);
        enum position_result result = fetch_committed(consumer_client(consumer), list, error);

        for (int i = 0; i < list->cnt && result == POSITION_TAKEN; i++)
                result = take_one(config, consumer_client(consumer), &list->elems[i], partitions, error);
        if (result == POSITION_TAKEN) {
                forget_others(list, partitions);
                if (consumer_assign(consumer, list, error) != 0)
                        result = POSITION_RETRY;
        }
        rd_kafka_topic_partition_list_destroy(list);
        return result;
}
