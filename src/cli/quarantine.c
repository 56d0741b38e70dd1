#include "cli/quarantine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "kafka/message.h"
#include "model/judge.h"

/* A marker that was read. */
struct quarantine_marker {
        struct release_id released;
        int64_t timestamp_ms;
};

struct quarantine_reading {
        struct quarantine *quarantine;
        size_t capacity; /* of the records */
};

int
quarantine_parse_reason(const char *text, struct quarantine_query *query, struct error *error)
{
        char names[160] = "";
        size_t len = 0;

        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++) {
                const char *name = judge_reason_name((enum quarantine_reason)r);

                if (strcmp(text, name) == 0) {
                        query->reason = name;
                        return 0;
                }
                len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", r == 0 ? "" : ", ", name);
        }
        return error_set(error, "unknown reason '%.20s'; the reasons are %s", text, names);
}

int
quarantine_add_id(const char *text, struct quarantine_query *query, struct error *error)
{
        struct release_id id;

        if (release_id_parse((struct span){text, strlen(text)}, &id) != 0)
                return error_set(error,
                                 "'%.64s' is not an ID, such as 2-17; gatepost quarantine list shows them",
                                 text);
        query->ids = mem_resize(query->ids, query->n_ids + 1, sizeof(id));
        query->ids[query->n_ids++] = id;
        return 0;
}

static char *
copy_header(const rd_kafka_message_t *message, const char *name)
{
        struct span value = message_header(message, name);

        return value.data == NULL ? NULL : mem_strndup(value.data, value.len);
}

static char *
copy_key(const rd_kafka_message_t *message)
{
        char *copy = mem_alloc(message->key_len + 1);

        if (message->key_len > 0)
                memcpy(copy, message->key, message->key_len);
        return copy;
}

static int
has_reason(const rd_kafka_message_t *message, const char *name)
{
        struct span reason = message_header(message, RECORD_REASON);

        return reason.len == strlen(name) && memcmp(reason.data, name, reason.len) == 0;
}

static int
is_queried(const struct quarantine_query *query, const rd_kafka_message_t *message,
           const struct release_id *id)
{
        for (size_t i = 0; i < query->n_ids; i++) {
                if (release_id_compare(&query->ids[i], id) == 0)
                        return 1;
        }
        if (query->n_ids > 0)
                return 0;
        if (query->reason != NULL && !has_reason(message, query->reason))
                return 0;
        return message_timestamp_ms(message) >= query->since_ms;
}

static void
add_record(struct quarantine_reading *reading, const rd_kafka_message_t *message, const struct release_id *id)
{
        struct quarantine *quarantine = reading->quarantine;
        const char *stub = judge_reason_name(QUARANTINE_UNPUBLISHABLE);
        struct release_id place;

        if (release_place_parse(message_header(message, RECORD_PARTITION),
                                message_header(message, RECORD_OFFSET), &place) != 0)
                place = (struct release_id){-1, -1};
        if (quarantine->n == reading->capacity) {
                reading->capacity = reading->capacity == 0 ? 64 : 2 * reading->capacity;
                quarantine->records =
                    mem_resize(quarantine->records, reading->capacity, sizeof(*quarantine->records));
        }
        quarantine->records[quarantine->n++] =
            (struct quarantine_record){.id = *id,
                                       .timestamp_ms = message_timestamp_ms(message),
                                       .key = copy_key(message),
                                       .key_len = message->key_len,
                                       .source = copy_header(message, RECORD_SOURCE),
                                       .reason = copy_header(message, RECORD_REASON),
                                       .detail = copy_header(message, RECORD_DETAIL),
                                       .delivery = place,
                                       .is_stub = message->len == 0 && has_reason(message, stub)};
}

static void
add_marker(struct quarantine *quarantine, const rd_kafka_message_t *message)
{
        struct quarantine_marker marker = {.timestamp_ms = message_timestamp_ms(message)};

        if (release_id_parse(message_header(message, RECORD_RELEASED), &marker.released) != 0)
                return;
        quarantine->markers =
            mem_resize(quarantine->markers, quarantine->n_markers + 1, sizeof(*quarantine->markers));
        quarantine->markers[quarantine->n_markers++] = marker;
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct quarantine_reading *reading = arg;
        struct quarantine *quarantine = reading->quarantine;
        struct release_id id = {message->partition, message->offset};

        (void)index, (void)error;
        if (message_is_marker(message))
                add_marker(quarantine, message);
        else if (is_queried(quarantine->query, message, &id))
                add_record(reading, message, &id);
        return RANGE_GO_ON;
}

static int
compare_records(const void *a, const void *b)
{
        return release_id_compare(&((const struct quarantine_record *)a)->id,
                                  &((const struct quarantine_record *)b)->id);
}

static struct quarantine_record *
find_record(const struct quarantine *quarantine, const struct release_id *id)
{
        const struct quarantine_record sought = {.id = *id};

        return quarantine->n == 0
                   ? NULL
                   : bsearch(&sought, quarantine->records, quarantine->n, sizeof(sought), compare_records);
}

static void
apply_markers(struct quarantine *quarantine)
{
        for (size_t i = 0; i < quarantine->n_markers; i++) {
                struct quarantine_record *record = find_record(quarantine, &quarantine->markers[i].released);

                if (record != NULL)
                        record->released_ms = quarantine->markers[i].timestamp_ms;
        }
}

/*
 * Check that every queried ID was found: its offset may belong to an aborted record or a transaction marker.
 */
static int
check_found(const struct quarantine *quarantine)
{
        const struct quarantine_query *query = quarantine->query;
        char text[RELEASE_ID_SIZE];

        for (size_t i = 0; i < query->n_ids; i++) {
                if (find_record(quarantine, &query->ids[i]) == NULL)
                        return command_fail(EX_NOINPUT,
                                            "there is no record %s in quarantine, or retention deleted it",
                                            release_id_format(&query->ids[i], text));
        }
        return 0;
}

int
quarantine_load(struct quarantine *quarantine, const struct config *config, struct quarantine_query *query)
{
        struct quarantine_reading reading = {.quarantine = quarantine};
        struct error error;
        int status = kafka_access_find(config, &query->bootstrap);

        *quarantine = (struct quarantine){.config = config, .query = query};
        if (status == 0)
                status = kafka_access_ranges(config, query->bootstrap, config->quarantine_topic,
                                             &quarantine->ranges, &quarantine->n_ranges);
        if (status != 0)
                return status;
        kafka_access_announce("quarantine", quarantine->ranges, quarantine->n_ranges);
        status = kafka_access_status(range_read(config, query->bootstrap, quarantine->ranges,
                                                quarantine->n_ranges, on_record, &reading, &error),
                                     &error);
        if (status != 0)
                return status;
        if (quarantine->n > 0)
                qsort(quarantine->records, quarantine->n, sizeof(*quarantine->records), compare_records);
        apply_markers(quarantine);
        return check_found(quarantine);
}

void
quarantine_clear(struct quarantine *quarantine)
{
        for (size_t i = 0; i < quarantine->n; i++) {
                free(quarantine->records[i].key);
                free(quarantine->records[i].source);
                free(quarantine->records[i].reason);
                free(quarantine->records[i].detail);
        }
        free(quarantine->records);
        free(quarantine->markers);
        free(quarantine->ranges);
}

static void
put_text(struct json_writer *json, const char *name, const char *text)
{
        if (text == NULL)
                json_null(json, name);
        else
                json_bytes(json, name, text, strlen(text));
}

void
quarantine_put_members(struct json_writer *json, const struct quarantine_record *record)
{
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE];

        json_member(json, "id", release_id_format(&record->id, id));
        json_member(json, "timestamp", clock_format_ms(record->timestamp_ms, when));
        put_text(json, "reason", record->reason);
        put_text(json, "detail", record->detail);
        put_text(json, "source", record->source);
        json_bytes(json, "deliveryId", record->key, record->key_len);
        if (record->delivery.partition < 0) {
                json_null(json, "delivery");
        } else {
                json_open_object(json, "delivery");
                json_number(json, "partition", record->delivery.partition);
                json_number(json, "offset", record->delivery.offset);
                json_close_object(json);
        }
        json_flag(json, "released", record->released_ms != 0);
        json_member(json, "releasedAt",
                    record->released_ms == 0 ? NULL : clock_format_ms(record->released_ms, when));
}
