#include "cli/quarantine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "cli/terminal.h"
#include "kafka/message.h"
#include "model/judge.h"

/*
 * Reading quarantine: once for the queried records, and a second time, unless all records are queried, for
 * other records of the same deliveries.
 */
struct quarantine_reading {
        struct quarantine *quarantine;
        struct terminal_progress progress;
        size_t capacity; /* of the records */
        /* The queried records, sorted by identity: to find other records of the same deliveries. */
        struct quarantine_record *queried;
        size_t n_queried;
};

/* Check that a queried record can exist. Returns 0, or an exit status after printing the reason. */
static int
check_id(const struct quarantine *quarantine, const struct release_id *id)
{
        const char *topic = quarantine->config->quarantine_topic;
        char text[RELEASE_ID_SIZE];
        const struct range *range;

        (void)release_id_format(id, text);
        if ((size_t)id->partition >= quarantine->n_ranges)
                return command_fail(EX_NOINPUT, "there is no record %s: the last partition of %s is %zu",
                                    text, topic, quarantine->n_ranges - 1);
        range = &quarantine->ranges[id->partition];
        if (id->offset < range->from)
                return command_fail(EX_NOINPUT,
                                    "the record %s was deleted by retention: partition %" PRId32
                                    " of %s now begins at offset %" PRId64,
                                    text, id->partition, topic, range->from);
        if (id->offset >= range->to)
                return command_fail(EX_NOINPUT,
                                    "there is no record %s: partition %" PRId32
                                    " of %s ends before offset %" PRId64,
                                    text, id->partition, topic, range->to);
        return 0;
}

int
quarantine_read_bounds(struct quarantine *quarantine, struct offsets *offsets)
{
        const struct quarantine_query *query = quarantine->query;
        struct error error;
        int result;

        result = offsets_stable_ranges(offsets, quarantine->config->quarantine_topic, &quarantine->ranges,
                                       &quarantine->n_ranges, KAFKA_ACCESS_TIMEOUT_MS, &error);
        if (result != 0)
                return kafka_access_fail(offsets_is_denied(offsets), error.text);
        for (size_t i = 0; i < query->n_ids; i++) {
                int status = check_id(quarantine, &query->ids[i]);

                if (status != 0)
                        return status;
        }
        return 0;
}

static char *
copy_header(const rd_kafka_message_t *message, const char *name)
{
        struct span value = message_header(message, name);

        return value.data == NULL ? NULL : mem_strndup(value.data, value.len);
}

static char *
copy_bytes(struct span bytes)
{
        char *copy = mem_alloc(bytes.len + 1);

        if (bytes.len > 0)
                memcpy(copy, bytes.data, bytes.len);
        return copy;
}

static int
compare_ids(const void *a, const void *b)
{
        return release_id_compare(a, b);
}

static int
is_queried(const struct quarantine_query *query, const rd_kafka_message_t *message,
           const struct release_id *id)
{
        struct span reason = message_header(message, RECORD_REASON);
        rd_kafka_timestamp_type_t type;

        if (query->n_ids > 0)
                return bsearch(id, query->ids, query->n_ids, sizeof(*id), compare_ids) != NULL;
        if (query->reason != NULL &&
            (reason.len != strlen(query->reason) || memcmp(reason.data, query->reason, reason.len) != 0))
                return 0;
        return rd_kafka_message_timestamp(message, &type) >= query->since_ms;
}

static int
is_stub(const rd_kafka_message_t *message)
{
        struct span reason = message_header(message, RECORD_REASON);
        const char *stub = judge_reason_name(QUARANTINE_UNPUBLISHABLE);

        return message->len == 0 && reason.len == strlen(stub) && memcmp(reason.data, stub, reason.len) == 0;
}

static void
add_record(struct quarantine_reading *reading, const rd_kafka_message_t *message, const struct release_id *id,
           const struct release_id *released_from)
{
        struct quarantine *quarantine = reading->quarantine;
        struct span key = {message->key, message->key_len};
        struct span signature = message_header(message, RECORD_SIGNATURE);
        struct span source = message_header(message, RECORD_SOURCE);
        struct release_id place;
        rd_kafka_timestamp_type_t type;
        struct quarantine_record *record;

        if (release_place_parse(message_header(message, RECORD_PARTITION),
                                message_header(message, RECORD_OFFSET), &place) != 0)
                place = (struct release_id){-1, -1};
        if (quarantine->n == reading->capacity) {
                reading->capacity = reading->capacity == 0 ? 64 : 2 * reading->capacity;
                quarantine->records =
                    mem_resize(quarantine->records, reading->capacity, sizeof(*quarantine->records));
        }
        record = &quarantine->records[quarantine->n++];
        *record = (struct quarantine_record){.id = *id,
                                             .timestamp_ms = rd_kafka_message_timestamp(message, &type),
                                             .key = copy_bytes(key),
                                             .key_len = key.len,
                                             .signature = copy_bytes(signature),
                                             .signature_len = signature.len,
                                             .source = source.data == NULL ? NULL : copy_bytes(source),
                                             .source_len = source.len,
                                             .reason = copy_header(message, RECORD_REASON),
                                             .detail = copy_header(message, RECORD_DETAIL),
                                             .delivery = place,
                                             .is_stub = is_stub(message),
                                             .release = {-1, -1},
                                             .returned_as = {-1, -1},
                                             .earlier_copy = {-1, -1},
                                             .released_from = *released_from};
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct quarantine_reading *reading = arg;
        struct quarantine *quarantine = reading->quarantine;
        struct release_id id = {message->partition, message->offset}, released_from = {-1, -1};

        (void)index;
        (void)error;
        terminal_progress_step(&reading->progress);
        if (release_id_parse(message_header(message, RECORD_RELEASED), &released_from) == 0) {
                struct span key = {message->key, message->key_len},
                            source = message_header(message, RECORD_SOURCE);

                quarantine->returns =
                    mem_resize(quarantine->returns, quarantine->n_returns + 1, sizeof(*quarantine->returns));
                quarantine->returns[quarantine->n_returns++] =
                    (struct quarantine_return){released_from,      id,        copy_bytes(key), key.len,
                                               copy_bytes(source), source.len};
        }
        if (is_queried(quarantine->query, message, &id))
                add_record(reading, message, &id, &released_from);
        return RANGE_GO_ON;
}

static int
compare_identities(const void *a, const void *b)
{
        return quarantine_compare_identities(a, b);
}

static enum range_answer
on_record_again(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct quarantine_reading *reading = arg;
        struct release_id id = {message->partition, message->offset}, released_from;
        struct quarantine_record found;

        (void)index;
        (void)error;
        terminal_progress_step(&reading->progress);
        quarantine_borrow_identity(&found, message);
        if (found.signature_len == 0 || is_queried(reading->quarantine->query, message, &id) ||
            bsearch(&found, reading->queried, reading->n_queried, sizeof(found), compare_identities) == NULL)
                return RANGE_GO_ON;
        if (release_id_parse(message_header(message, RECORD_RELEASED), &released_from) != 0)
                released_from = (struct release_id){-1, -1};
        add_record(reading, message, &id, &released_from);
        reading->quarantine->records[reading->quarantine->n - 1].is_extra = 1;
        return RANGE_GO_ON;
}

static int
same_bytes(const char *one, size_t one_len, const char *other, size_t other_len)
{
        return one_len == other_len && (one_len == 0 || memcmp(one, other, one_len) == 0);
}

/*
 * A record that returned was released, even if its release was deleted since. When the topic is recreated,
 * IDs are used again, so source and key must match too.
 */
static void
note_returns(struct quarantine *quarantine)
{
        for (size_t i = 0; i < quarantine->n_returns; i++) {
                const struct quarantine_return *returned = &quarantine->returns[i];
                struct quarantine_record *record = quarantine_find(quarantine, &returned->released_from);

                if (record != NULL &&
                    same_bytes(record->key, record->key_len, returned->key, returned->key_len) &&
                    same_bytes(record->source, record->source_len, returned->source, returned->source_len))
                        record->returned_as = returned->id;
        }
}

static int
compare_records(const void *a, const void *b)
{
        return release_id_compare(&((const struct quarantine_record *)a)->id,
                                  &((const struct quarantine_record *)b)->id);
}

/* Read the whole topic. Returns 0, or an exit status after printing the reason. */
static int
read_all(struct quarantine_reading *reading, const char *label, range_record *on_each)
{
        const struct quarantine *quarantine = reading->quarantine;
        enum range_result result;
        struct error error;

        terminal_progress_begin(&reading->progress, label,
                                kafka_access_count_offsets(quarantine->ranges, quarantine->n_ranges));
        result = range_read(quarantine->config, quarantine->query->bootstrap, quarantine->ranges,
                            quarantine->n_ranges, on_each, reading, &error);
        terminal_progress_end(&reading->progress);
        return kafka_access_status(result, &error);
}

/* Add the other records of the same deliveries: a release of one counts for all. */
static int
read_extras(struct quarantine_reading *reading)
{
        const struct quarantine *quarantine = reading->quarantine;
        size_t size = quarantine->n * sizeof(*reading->queried);
        int status;

        reading->queried = mem_alloc(size);
        reading->n_queried = quarantine->n;
        memcpy(reading->queried, quarantine->records, size);
        qsort(reading->queried, reading->n_queried, sizeof(*reading->queried), compare_identities);
        status = read_all(reading, "reading quarantine for copies of these deliveries", on_record_again);
        free(reading->queried);
        return status;
}

int
quarantine_read(struct quarantine *quarantine)
{
        const struct quarantine_query *query = quarantine->query;
        struct quarantine_reading reading = {.quarantine = quarantine};
        int status = read_all(&reading, "reading quarantine", on_record);

        if (status == 0 && quarantine->n > 0 &&
            (query->n_ids > 0 || query->reason != NULL || query->since_ms != QUARANTINE_FROM_BEGINNING))
                status = read_extras(&reading);
        if (status != 0)
                return status;
        if (quarantine->n > 0)
                qsort(quarantine->records, quarantine->n, sizeof(*quarantine->records), compare_records);
        note_returns(quarantine);
        return 0;
}
