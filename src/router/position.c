#include "router/position.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/offsets.h"

#define TIME_DIGITS_MAX 18 /* leaves room for arithmetic in 64 bits */

/* The questions of one call, and the answers from Kafka. Index i is question i everywhere. */
struct search {
        const struct config *config;
        struct log_query *query;
        const struct position_question *questions;
        struct position *positions;
        size_t n;
        struct log_query_item *items; /* leaders, and the answers to the last request */
        char (*metadata)[LOG_QUERY_METADATA_SIZE];
        int64_t *committed; /* -1: none */
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
        item->metadata = metadata; /* freed with the list */
        item->metadata_size = strlen(metadata);
        return 0;
}

/* Return the timestamp that position_add_offset() stored; -1 when another program committed the offset. */
static int64_t
read_routed_ms(const char *metadata)
{
        /* Some clients that commit the offset again store the terminating NUL as well. */
        size_t n_digits = strspn(metadata, "0123456789");

        return n_digits > 0 && n_digits <= TIME_DIGITS_MAX && metadata[n_digits] == '\0'
                   ? strtoll(metadata, NULL, 10)
                   : -1;
}

static int
is_open(const struct search *search, size_t i)
{
        return search->positions[i].trouble == TROUBLE_NONE;
}

static void
fail(struct search *search, size_t i, enum partition_trouble trouble, const char *what)
{
        search->positions[i].trouble = trouble;
        (void)error_set(&search->positions[i].error, "%s%s%s", what, *what == '\0' ? "" : ": ",
                        search->items[i].error.text);
}

/* Note failed requests; the caller asks for these partitions again later. */
static void
note_errors(struct search *search, enum partition_trouble trouble, const char *what)
{
        for (size_t i = 0; i < search->n; i++) {
                if (is_open(search, i) && search->items[i].error.text[0] != '\0')
                        fail(search, i, trouble, what);
        }
}

/* Request an offset for each partition without trouble: items[i].offset says which. */
static void
ask(struct search *search, const char *what)
{
        log_query_offsets(search->query, search->items, search->n);
        note_errors(search, TROUBLE_UNREACHABLE, what);
}

static void
ask_same(struct search *search, int64_t offset, const char *what)
{
        for (size_t i = 0; i < search->n; i++)
                search->items[i].offset = offset;
        ask(search, what);
}

static void
ask_leaders(struct search *search, int32_t *n_partitions)
{
        struct error error;

        *n_partitions = -1;
        if (log_query_leaders(search->query, search->items, search->n, n_partitions, &error) == 0) {
                note_errors(search, TROUBLE_NO_LEADER, "");
                return;
        }
        for (size_t i = 0; i < search->n; i++)
                search->items[i].error = error;
        note_errors(search, TROUBLE_UNREACHABLE, "");
}

/*
 * Leave partitions waiting whose output topic is still unavailable: their transaction would only fail again.
 */
static void
ask_topics(struct search *search)
{
        for (size_t i = 0; i < search->n; i++) {
                const char *topic = search->questions[i].topic;

                if (*topic != '\0' && is_open(search, i) &&
                    !log_query_topic_is_available(search->query, topic, &search->items[i].error))
                        fail(search, i, TROUBLE_TOPIC, "");
        }
}

/* Request the committed offsets and the bounds of the logs. */
static void
ask_facts(struct search *search)
{
        log_query_committed(search->query, search->items, search->n, search->metadata);
        note_errors(search, TROUBLE_UNREACHABLE, "committed offset");
        for (size_t i = 0; i < search->n; i++)
                search->committed[i] = search->items[i].offset;
        ask_same(search, LOG_QUERY_EARLIEST, "log start offset");
        for (size_t i = 0; i < search->n; i++)
                search->positions[i].low = search->items[i].offset;
        ask_same(search, LOG_QUERY_LATEST, "log end offset");
        for (size_t i = 0; i < search->n; i++)
                search->positions[i].high =
                    search->items[i].error.text[0] == '\0' ? search->items[i].offset : -1;
}

/*
 * No offset is committed, so the log should be new. If it has lost its beginning to retention, the group's
 * offsets have expired (brokers delete those of a group without members after offsets.retention.minutes), and
 * all records would be published again.
 */
static void
judge_first(struct search *search, size_t i)
{
        struct position *position = &search->positions[i];
        struct error how;

        position->is_uncommitted = 1;
        position->decide_from = position->low;
        if (position->low == 0)
                return;
        position->trouble = TROUBLE_NO_OFFSET;
        offsets_explain_reset(search->config, position->partition, "--to-offset OFFSET", &how);
        (void)error_set(
            &position->error,
            "partition %d of %s begins at offset %" PRId64
            " and the group has no committed offset in it: it never had one, or it has expired. Set it: %s; "
            "--to-earliest publishes all records in the log",
            position->partition, search->config->deliveries_topic, position->low, how.text);
}

static void
judge_committed(struct search *search, size_t i)
{
        struct position *position = &search->positions[i];

        position->routed_ms = -1;
        if (search->committed[i] < 0) {
                judge_first(search, i);
                return;
        }
        position->decide_from = search->committed[i];
        position->routed_ms = read_routed_ms(search->metadata[i]);
        if (position->routed_ms < 0 && position->decide_from == search->questions[i].bare_offset)
                position->routed_ms = search->questions[i].bare_ms;
        if (position->decide_from < position->low) {
                position->n_deleted = position->low - position->decide_from;
                position->decide_from = position->low;
                position->routed_ms = -1; /* that record was deleted, too */
        }
}

static int
is_beyond_end(const struct position *position)
{
        return position->decide_from > position->high;
}

static int
is_cut_off(const struct search *search, size_t i)
{
        const struct position_question *question = &search->questions[i];
        const struct position *position = &search->positions[i];

        return (question->diverged_at == position->decide_from &&
                question->diverged_ms == position->routed_ms) ||
               is_beyond_end(position);
}

/* It cannot be determined which records have been routed. */
static void
refuse(const struct search *search, struct position *position)
{
        struct error how;

        if (is_beyond_end(position)) {
                position->trouble = TROUBLE_BEYOND_END;
                offsets_explain_reset(search->config, position->partition, "--to-earliest", &how);
                (void)error_set(
                    &position->error,
                    "partition %d of %s ends at offset %" PRId64 " but was routed up to %" PRId64
                    ": was the topic deleted and recreated, or the log lost? If so, %s; without :%d "
                    "only if the whole topic was recreated",
                    position->partition, search->config->deliveries_topic, position->high,
                    position->decide_from, how.text, position->partition);
        } else if (position->routed_ms < 0) {
                position->trouble = TROUBLE_BEYOND_END;
                offsets_explain_reset(search->config, position->partition, "--to-offset OFFSET", &how);
                (void)error_set(&position->error,
                                "partition %d of %s ended before offset %" PRId64
                                ", up to which it was routed, and has grown since: deliveries below it may "
                                "not be published. Compare with what was published, then %s",
                                position->partition, search->config->deliveries_topic, position->decide_from,
                                how.text);
        } else {
                position->trouble = TROUBLE_OTHER_LOG;
                offsets_explain_reset(search->config, position->partition, "--to-offset OFFSET", &how);
                (void)error_set(&position->error,
                                "partition %d of %s has another record at offset %" PRId64
                                " than the one that was routed: the log was cut off, or the topic recreated. "
                                "Compare with what was published, then %s",
                                position->partition, search->config->deliveries_topic,
                                position->decide_from - 1, how.text);
        }
}

/*
 * The log was truncated below the committed offset. The first record that is newer than the last routed one
 * shows where. If no older record precedes it, this is another log. Until such a record is appended, there is
 * nothing to route.
 */
static void
judge_cut_off(struct search *search, size_t i, int64_t first_younger)
{
        struct position *position = &search->positions[i];

        if (position->routed_ms < 0 || position->high == position->low || first_younger == position->low) {
                refuse(search, position);
        } else if (first_younger >= 0 && first_younger < position->decide_from) {
                position->n_cut_off = position->decide_from - first_younger;
                position->decide_from = first_younger;
                position->routed_ms = -1;
        } else if (is_beyond_end(position)) {
                position->trouble = TROUBLE_TRUNCATED;
                (void)error_set(&position->error,
                                "Kafka has lost records: the log ends at offset %" PRId64
                                " but was routed up to %" PRId64 "; routing resumes with the next delivery",
                                position->high, position->decide_from);
        } else {
                refuse(search, position);
        }
}

/* For the logs that were truncated, find where their new records begin. */
static void
find_cuts(struct search *search)
{
        int is_wanted = 0;

        for (size_t i = 0; i < search->n; i++) {
                search->items[i].offset = LOG_QUERY_LATEST;
                if (!is_open(search, i) || !is_cut_off(search, i))
                        continue;
                if (search->positions[i].routed_ms >= 0)
                        search->items[i].offset = search->positions[i].routed_ms + 1;
                is_wanted = 1;
        }
        if (!is_wanted)
                return;
        ask(search, "offset by time");
        for (size_t i = 0; i < search->n; i++) {
                if (is_open(search, i) && is_cut_off(search, i))
                        judge_cut_off(search, i, search->items[i].offset);
        }
}

/* Return the time from which all records must be in the dedup table; DEDUP_COMPLETE: all records. */
static int64_t
restore_time(const struct search *search, size_t i)
{
        const struct position *position = &search->positions[i];
        int64_t oldest_ms = search->questions[i].needed_ms < position->routed_ms
                                ? search->questions[i].needed_ms
                                : position->routed_ms;
        int64_t from_ms = dedup_restore_start(search->config->dedup_window_ms, oldest_ms);

        if (position->decide_from == position->low || position->routed_ms < 0 || from_ms <= 0)
                return DEDUP_COMPLETE;
        return from_ms;
}

/*
 * Find the offset from which records must be read to restore the dedup table: the start of the log when the
 * age of the record before decide_from is unknown, or when no record is older than needed.
 */
static void
find_restore_starts(struct search *search)
{
        for (size_t i = 0; i < search->n; i++) {
                int64_t from_ms = is_open(search, i) ? restore_time(search, i) : DEDUP_COMPLETE;

                search->positions[i].complete_ms = from_ms;
                search->items[i].offset = from_ms == DEDUP_COMPLETE ? LOG_QUERY_EARLIEST : from_ms;
        }
        ask(search, "offset by time");
        for (size_t i = 0; i < search->n; i++) {
                struct position *position = &search->positions[i];
                int64_t start = search->items[i].offset;

                if (start < position->low)
                        start = position->low;
                if (start == position->low)
                        position->complete_ms = DEDUP_COMPLETE;
                position->restore_from = start < position->decide_from ? start : position->decide_from;
        }
}

struct position_question
position_question(const struct partition *partition)
{
        /* Not refused yet: a broker that was cut off may have answered. */
        int may_err = partition->trouble == TROUBLE_BEYOND_END &&
                      partition_state(partition, clock_monotonic_ms()) != PARTITION_REFUSED;
        struct position_question question = {.partition = partition->id,
                                             .needed_ms = partition->needed_ms,
                                             .diverged_at = may_err ? -1 : partition->diverged_at,
                                             .diverged_ms = partition->diverged_ms,
                                             .bare_offset = partition->bare_offset,
                                             .bare_ms = partition->bare_ms};

        memcpy(question.topic, partition->topic, sizeof(question.topic));
        return question;
}

void
position_find(struct log_query *query, const struct config *config, const struct position_question *questions,
              size_t n, struct position *positions, int32_t *n_partitions)
{
        struct search search = {config,
                                query,
                                questions,
                                positions,
                                n,
                                mem_alloc(n * sizeof(*search.items)),
                                mem_alloc(n * sizeof(*search.metadata)),
                                mem_alloc(n * sizeof(*search.committed))};

        for (size_t i = 0; i < n; i++) {
                positions[i] = (struct position){.partition = questions[i].partition, .high = -1};
                search.items[i].partition = questions[i].partition;
        }
        ask_leaders(&search, n_partitions);
        ask_facts(&search);
        for (size_t i = 0; i < n; i++) {
                if (is_open(&search, i))
                        judge_committed(&search, i);
        }
        find_cuts(&search);
        ask_topics(&search);
        find_restore_starts(&search);
        free(search.items);
        free(search.metadata);
        free(search.committed);
}
