#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/kafka_access.h"
#include "cli/quarantine.h"
#include "cli/quarantine_bodies.h"
#include "cli/show_record.h"

static struct quarantine_query query = {.since_ms = QUARANTINE_FROM_BEGINNING};
static int as_json, as_raw;

static int has_body;

static void
print_line(const char *name, const char *text)
{
        printf("%-12s ", name);
        text_print(stdout, text == NULL ? "-" : text, text == NULL ? 1 : strlen(text));
        putchar('\n');
}

static void
print_text(const struct quarantine_record *record, const char *deliveries_topic)
{
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE];

        print_line("id", release_id_format(&record->id, id));
        print_line("quarantined", clock_format_ms(record->timestamp_ms, when));
        print_line("reason", record->reason);
        print_line("detail", record->detail);
        printf("%-12s ", "delivery-id");
        text_print(stdout, record->key, record->key_len);
        putchar('\n');
        if (record->delivery.partition >= 0)
                printf("%-12s %" PRId32 "/%" PRId64 " of %s\n", "delivery", record->delivery.partition,
                       record->delivery.offset, deliveries_topic);
        print_line("released", record->released_ms == 0 ? "no" : clock_format_ms(record->released_ms, when));
}

/* Print the record as JSON, with its body and headers if there is a message. */
static void
print_json(const struct quarantine_record *record, const rd_kafka_message_t *message)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        quarantine_put_members(json, record);
        if (message != NULL)
                show_record_members(json, message);
        json_close_object(json);
        json_print(json);
}

static enum range_answer
on_body(const rd_kafka_message_t *message, const struct quarantine_record *record, struct error *error,
        void *arg)
{
        const struct quarantine *quarantine = arg;

        (void)error;
        has_body = 1;
        if (as_raw) {
                /* An empty value may be a null pointer. */
                (void)fwrite(message->len == 0 ? "" : message->payload, 1, message->len, stdout);
        } else if (as_json) {
                print_json(record, message);
        } else {
                print_text(record, quarantine->config->deliveries_topic);
                printf("\nheaders\n");
                show_record_headers(message);
                printf("\nbody%s, %zu bytes\n", record->is_stub ? " of the delivery" : "", message->len);
                show_record_body(message->payload, message->len);
        }
        return RANGE_ENOUGH;
}

/* Print what is known of a record whose body was deleted. Returns an exit status. */
static int
print_without_body(const struct quarantine_record *record, const char *deliveries_topic)
{
        if (as_json)
                print_json(record, NULL);
        else if (!as_raw)
                print_text(record, deliveries_topic);
        return command_fail(EX_NOINPUT, "%s",
                            record->is_stub ? "only its delivery had the body, and was deleted"
                                            : "the record was deleted before it could be shown");
}

static int
parse_id(const char *text, struct error *error)
{
        return quarantine_add_id(text, &query, error);
}

static int
check(struct error *error)
{
        return as_json && as_raw ? error_set(error, "takes either --json or --raw") : 0;
}

static int
run(const struct config *config)
{
        struct quarantine quarantine;
        int status = quarantine_load(&quarantine, config, &query);

        if (status == 0)
                status = quarantine_bodies_read(&quarantine, on_body, &quarantine);
        if (status == 0 && !has_body)
                status = print_without_body(&quarantine.records[0], config->deliveries_topic);
        quarantine_clear(&quarantine);
        free(query.ids);
        return status;
}

static const struct command_option options[] = {
    {NULL, "ID", "show this record; gatepost quarantine list shows the IDs", .parse = parse_id},
    {"json", NULL, "print JSON", .flag = &as_json},
    {"raw", NULL, "print only the raw body", .flag = &as_raw},
    KAFKA_ACCESS_BOOTSTRAP(query.bootstrap),
};

const struct command quarantine_show_command = {
    .name = "quarantine show",
    .help = "show a record in quarantine with its body",
    .check = check,
    .run = run,
    COMMAND_OPTIONS(options),
};
