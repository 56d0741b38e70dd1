#include "cli/quarantine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "kafka/message.h"
#include "model/judge.h"

int
quarantine_parse_reason(const char *text, struct quarantine_query *query, struct error *error)
{
        const char *names[QUARANTINE_N_REASONS], *closest;
        char list[256] = "";
        size_t len = 0;

        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++) {
                names[r] = judge_reason_name((enum quarantine_reason)r);
                if (strcmp(text, names[r]) == 0) {
                        query->reason = names[r];
                        return 0;
                }
                len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", r == 0 ? "" : ", ", names[r]);
        }
        closest = text_closest(text, names, QUARANTINE_N_REASONS);
        if (closest != NULL)
                return error_set(error, "unknown reason '%.64s'; did you mean %s?", text, closest);
        return error_set(error, "unknown reason '%.64s'; the reasons are %s", text, list);
}

int
quarantine_add_id(const char *text, struct quarantine_query *query, struct error *error)
{
        struct release_id id;
        size_t at = 0;

        if (release_id_parse((struct span){text, strlen(text)}, &id) != 0)
                return error_set(
                    error,
                    "'%.64s' is not an ID, which is a partition and an offset, such as 2-17; gatepost "
                    "quarantine list shows them",
                    text);
        while (at < query->n_ids && release_id_compare(&query->ids[at], &id) < 0)
                at++;
        if (at < query->n_ids && release_id_compare(&query->ids[at], &id) == 0)
                return 0;
        query->ids = mem_resize(query->ids, query->n_ids + 1, sizeof(id));
        memmove(query->ids + at + 1, query->ids + at, (query->n_ids - at) * sizeof(id));
        query->ids[at] = id;
        query->n_ids++;
        return 0;
}

static int
compare_with_record(const void *id, const void *record)
{
        return release_id_compare(id, &((const struct quarantine_record *)record)->id);
}

struct quarantine_record *
quarantine_find(const struct quarantine *quarantine, const struct release_id *id)
{
        return quarantine->n == 0 ? NULL
                                  : bsearch(id, quarantine->records, quarantine->n,
                                            sizeof(*quarantine->records), compare_with_record);
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
                if (quarantine_find(quarantine, &query->ids[i]) == NULL)
                        return command_fail(EX_NOINPUT, "there is no record %s in quarantine",
                                            release_id_format(&query->ids[i], text));
        }
        return 0;
}

void
quarantine_borrow_identity(struct quarantine_record *record, const rd_kafka_message_t *message)
{
        struct span source = message_header(message, RECORD_SOURCE),
                    signature = message_header(message, RECORD_SIGNATURE);

        *record = (struct quarantine_record){.key = message->key,
                                             .key_len = message->key_len,
                                             .source = (char *)(uintptr_t)source.data,
                                             .source_len = source.len,
                                             .signature = (char *)(uintptr_t)signature.data,
                                             .signature_len = signature.len};
}

static int
compare_bytes(const char *one, size_t one_len, const char *other, size_t other_len)
{
        if (one_len != other_len)
                return one_len < other_len ? -1 : 1;
        return one_len == 0 ? 0 : memcmp(one, other, one_len);
}

int
quarantine_compare_identities(const struct quarantine_record *one, const struct quarantine_record *other)
{
        int order = compare_bytes(one->source, one->source_len, other->source, other->source_len);

        if (order == 0)
                order = compare_bytes(one->key, one->key_len, other->key, other->key_len);
        return order != 0 ? order
                          : compare_bytes(one->signature, one->signature_len, other->signature,
                                          other->signature_len);
}

static void
clear_record(struct quarantine_record *record)
{
        free(record->key);
        free(record->signature);
        free(record->source);
        free(record->reason);
        free(record->detail);
}

static void
drop_extras(struct quarantine *quarantine)
{
        size_t n = 0;

        for (size_t i = 0; i < quarantine->n; i++) {
                if (quarantine->records[i].is_extra)
                        clear_record(&quarantine->records[i]);
                else
                        quarantine->records[n++] = quarantine->records[i];
        }
        quarantine->n = n;
}

int
quarantine_load(struct quarantine *quarantine, const struct config *config, struct quarantine_query *query)
{
        struct offsets *offsets;
        struct error error;
        int status = kafka_access_find(config, &query->bootstrap);

        memset(quarantine, 0, sizeof(*quarantine));
        quarantine->config = config;
        quarantine->query = query;
        if (status != 0)
                return status;
        offsets = offsets_new(config, query->bootstrap, &error);
        if (offsets == NULL)
                return command_fail(EX_CONFIG, "%s", error.text);
        status = quarantine_read_bounds(quarantine, offsets);
        if (status == 0)
                status = quarantine_read(quarantine);
        if (status == 0)
                status = check_found(quarantine);
        if (status == 0)
                status = quarantine_search(quarantine, offsets);
        drop_extras(quarantine);
        offsets_free(offsets);
        return status;
}

void
quarantine_clear(struct quarantine *quarantine)
{
        for (size_t i = 0; i < quarantine->n; i++)
                clear_record(&quarantine->records[i]);
        for (size_t i = 0; i < quarantine->n_returns; i++) {
                free(quarantine->returns[i].key);
                free(quarantine->returns[i].source);
        }
        free(quarantine->records);
        free(quarantine->returns);
        free(quarantine->ranges);
}

char *
quarantine_format_place(const struct release_id *place, char text[RELEASE_ID_SIZE])
{
        if (place->partition < 0)
                (void)snprintf(text, RELEASE_ID_SIZE, "-");
        else
                (void)snprintf(text, RELEASE_ID_SIZE, "%" PRId32 "/%" PRId64, place->partition,
                               place->offset);
        return text;
}

const char *
quarantine_state_name(const struct quarantine_record *record)
{
        static const char *const names[] = {
            [QUARANTINE_NOT_RELEASED] = "no", [QUARANTINE_RELEASED] = "yes", [QUARANTINE_UNSURE] = "unsure"};

        return names[record->state];
}

const char *
quarantine_body_topic(const struct quarantine *quarantine, const struct quarantine_record *record)
{
        return record->is_stub ? quarantine->config->deliveries_topic : quarantine->config->quarantine_topic;
}

const struct release_id *
quarantine_body_place(const struct quarantine_record *record)
{
        return record->is_stub ? &record->delivery : &record->id;
}

char *
quarantine_describe_doubt(const struct quarantine *quarantine, const struct quarantine_record *record,
                          char text[QUARANTINE_CLAUSE_SIZE])
{
        static const char *const findings[] = {
            [QUARANTINE_DOUBT_NONE] = "has it",
            [QUARANTINE_DOUBT_DELETED] = "no longer has it",
            [QUARANTINE_DOUBT_PAST_END] = "ends before that: it was recreated or restored",
            [QUARANTINE_DOUBT_NO_RECORD] = "has no record there",
            [QUARANTINE_DOUBT_OTHER_RECORD] = "has another record there: it was recreated or restored",
            [QUARANTINE_DOUBT_PARTLY_DELETED] =
                "has more partitions now, one of which has lost the records of that time",
        };
        char place[RELEASE_ID_SIZE];

        if (record->doubt == QUARANTINE_DOUBT_NO_PLACE)
                (void)snprintf(text, QUARANTINE_CLAUSE_SIZE,
                               "it does not name the place of its delivery in %s",
                               quarantine->config->deliveries_topic);
        else
                (void)snprintf(text, QUARANTINE_CLAUSE_SIZE, "its delivery was at %s, and %s %s",
                               quarantine_format_place(&record->doubtful_place, place),
                               quarantine->config->deliveries_topic, findings[record->doubt]);
        return text;
}

static void
put_text(struct json_writer *json, const char *name, const char *text)
{
        if (text == NULL)
                json_null(json, name);
        else
                json_bytes(json, name, text, strlen(text));
}

static void
put_place(struct json_writer *json, const char *name, const struct release_id *place)
{
        if (place->partition < 0) {
                json_null(json, name);
                return;
        }
        json_open_object(json, name);
        json_number(json, "partition", place->partition);
        json_number(json, "offset", place->offset);
        json_close_object(json);
}

static void
put_id(struct json_writer *json, const char *name, const struct release_id *id)
{
        char text[RELEASE_ID_SIZE];

        json_member(json, name, id->partition < 0 ? NULL : release_id_format(id, text));
}

void
quarantine_put_members(struct json_writer *json, const struct quarantine_record *record)
{
        char when[CLOCK_RFC3339_SIZE];

        put_id(json, "id", &record->id);
        json_member(json, "timestamp", clock_format_ms(record->timestamp_ms, when));
        put_text(json, "reason", record->reason);
        put_text(json, "detail", record->detail);
        put_text(json, "source", record->source);
        json_bytes(json, "deliveryId", record->key, record->key_len);
        put_place(json, "delivery", &record->delivery);
        if (record->state == QUARANTINE_UNSURE)
                json_null(json, "released");
        else
                json_flag(json, "released", record->state == QUARANTINE_RELEASED);
        put_place(json, "release", &record->release);
        put_id(json, "cameBackAs", &record->returned_as);
        put_id(json, "cameOf", &record->released_from);
}
