#include "cli/quarantine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_look.h"
#include "cli/quarantine_print.h"
#include "kafka/message.h"
#include "model/judge.h"

int
quarantine_parse_reason(const char *text, struct quarantine_wish *wish, struct error *error)
{
        const char *names[QUARANTINE_N_REASONS], *closest;
        char list[256] = "";
        size_t len = 0;

        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++) {
                names[r] = judge_reason_name((enum quarantine_reason)r);
                if (strcmp(text, names[r]) == 0) {
                        wish->reason = names[r];
                        return 0;
                }
                len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", r == 0 ? "" : ", ", names[r]);
        }
        closest = text_closest(text, names, QUARANTINE_N_REASONS);
        if (closest != NULL)
                return error_set(error, "there is no reason '%.64s'; did you mean %s?", text, closest);
        return error_set(error, "there is no reason '%.64s'; there are %s", text, list);
}

int
quarantine_add_id(const char *text, struct quarantine_wish *wish, struct error *error)
{
        struct release_id id;
        size_t at = 0;

        if (release_id_parse((struct span){text, strlen(text)}, &id) != 0)
                return error_set(
                    error,
                    "'%.64s' is no ID: that is partition and offset in quarantine, such as 2-17, "
                    "as gatepost quarantine list shows it",
                    text);
        while (at < wish->n_ids && release_id_compare(&wish->ids[at], &id) < 0)
                at++;
        if (at < wish->n_ids && release_id_compare(&wish->ids[at], &id) == 0)
                return 0;
        wish->ids = mem_resize(wish->ids, wish->n_ids + 1, sizeof(id));
        memmove(wish->ids + at + 1, wish->ids + at, (wish->n_ids - at) * sizeof(id));
        wish->ids[at] = id;
        wish->n_ids++;
        return 0;
}

int
quarantine_refuse(const struct quarantine_wish *wish, int status, const char *format, ...)
{
        va_list args;

        fprintf(stderr, "gatepost %s: ", wish->command);
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        return status;
}

int
quarantine_failed(const struct quarantine_wish *wish, enum range_result result, const struct error *error)
{
        switch (result) {
        case RANGE_DENIED:
                return quarantine_refuse(wish, EX_NOPERM, "%s", error->text);
        case RANGE_AWAY:
                return quarantine_refuse(wish, EX_UNAVAILABLE, "%s", error->text);
        case RANGE_OPEN_TRANSACTION:
        case RANGE_DELETED:
                return quarantine_refuse(wish, EX_TEMPFAIL, "%s; try again", error->text);
        case RANGE_DONE:
        case RANGE_FAILED:
                break;
        }
        return quarantine_refuse(wish, EX_OSERR, "%s", error->text);
}

char *
quarantine_stub_text(const struct quarantine *quarantine, const struct quarantined *record,
                     char text[QUARANTINE_DOUBT_SIZE])
{
        char place[RELEASE_ID_SIZE];

        (void)snprintf(text, QUARANTINE_DOUBT_SIZE, "its body is not in quarantine, but at %s of %s",
                       quarantine_print_place(&record->delivery, place),
                       quarantine->config->deliveries_topic);
        return text;
}

static int
compare_with_record(const void *id, const void *record)
{
        return release_id_compare(id, &((const struct quarantined *)record)->id);
}

struct quarantined *
quarantine_find(const struct quarantine *quarantine, const struct release_id *id)
{
        return quarantine->n == 0 ? NULL
                                  : bsearch(id, quarantine->records, quarantine->n,
                                            sizeof(*quarantine->records), compare_with_record);
}

/* What was asked for by its ID must be there: an offset may also be one of what never was committed. */
static int
check_found(const struct quarantine *quarantine)
{
        const struct quarantine_wish *wish = quarantine->wish;
        char text[RELEASE_ID_SIZE];

        for (size_t i = 0; i < wish->n_ids; i++) {
                if (quarantine_find(quarantine, &wish->ids[i]) == NULL)
                        return quarantine_refuse(wish, EX_NOINPUT, "there is no record %s in quarantine",
                                                 release_id_format(&wish->ids[i], text));
        }
        return 0;
}

void
quarantine_identify(struct quarantined *record, const rd_kafka_message_t *message)
{
        struct span source = message_header(message, RECORD_SOURCE),
                    signature = message_header(message, RECORD_SIGNATURE);

        *record = (struct quarantined){.key = message->key,
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
quarantine_compare_identities(const struct quarantined *one, const struct quarantined *other)
{
        int order = compare_bytes(one->source, one->source_len, other->source, other->source_len);

        if (order == 0)
                order = compare_bytes(one->key, one->key_len, other->key, other->key_len);
        return order != 0 ? order
                          : compare_bytes(one->signature, one->signature_len, other->signature,
                                          other->signature_len);
}

static void
clear_record(struct quarantined *record)
{
        free(record->key);
        free(record->signature);
        free(record->source);
        free(record->reason);
        free(record->detail);
}

/* What was not wished for has served its purpose. */
static void
drop_twins(struct quarantine *quarantine)
{
        size_t n = 0;

        for (size_t i = 0; i < quarantine->n; i++) {
                if (quarantine->records[i].is_twin)
                        clear_record(&quarantine->records[i]);
                else
                        quarantine->records[n++] = quarantine->records[i];
        }
        quarantine->n = n;
}

int
quarantine_look(struct quarantine *quarantine, const struct config *config,
                const struct quarantine_wish *wish)
{
        struct offsets *offsets;
        struct error error;
        int status;

        memset(quarantine, 0, sizeof(*quarantine));
        quarantine->config = config;
        quarantine->wish = wish;
        offsets = offsets_new(config, wish->bootstrap, &error);
        if (offsets == NULL)
                return quarantine_refuse(wish, EX_CONFIG, "%s", error.text);
        status = quarantine_bound(quarantine, offsets);
        if (status == 0)
                status = quarantine_read(quarantine);
        if (status == 0)
                status = check_found(quarantine);
        if (status == 0)
                status = quarantine_find_releases(quarantine, offsets);
        drop_twins(quarantine);
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
