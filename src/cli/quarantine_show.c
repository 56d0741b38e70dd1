#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/kafka_access.h"
#include "cli/quarantine.h"
#include "cli/show_record.h"

static struct quarantine_query query = {.since_ms = QUARANTINE_FROM_BEGINNING};
static int as_json, as_raw;

struct show_view {
        const struct quarantine *quarantine;
        const struct quarantine_record *record;
        int is_shown;
};

static void
print_line(const char *name, const char *text)
{
        printf("%-12s ", name);
        text_print(stdout, text == NULL ? "-" : text, text == NULL ? 1 : strlen(text));
        putchar('\n');
}

static void
print_place(const char *name, const struct release_id *place, const char *topic)
{
        char text[RELEASE_ID_SIZE];

        printf("%-12s %s of %s\n", name, quarantine_format_place(place, text), topic);
}

static void
print_release(const struct show_view *view)
{
        const struct quarantine_record *record = view->record;
        const char *topic = view->quarantine->config->deliveries_topic;
        char text[RELEASE_ID_SIZE], doubt[QUARANTINE_CLAUSE_SIZE];

        if (record->state == QUARANTINE_UNSURE)
                printf("%-12s unsure: %s\n", "released",
                       quarantine_describe_doubt(view->quarantine, record, doubt));
        else if (record->release.partition >= 0)
                print_place("released as", &record->release, topic);
        else
                print_line("released", quarantine_state_name(record));
        if (record->returned_as.partition >= 0)
                print_line("came back as", release_id_format(&record->returned_as, text));
        if (record->released_from.partition >= 0)
                print_line("release of", release_id_format(&record->released_from, text));
}

static void
print_text(const struct show_view *view, const rd_kafka_message_t *message)
{
        const struct quarantine_record *record = view->record;
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE], stub[QUARANTINE_CLAUSE_SIZE];

        print_line("id", release_id_format(&record->id, id));
        print_line("quarantined", clock_format_ms(record->timestamp_ms, when));
        print_line("reason", record->reason);
        print_line("detail", record->detail);
        printf("%-12s ", "delivery-id");
        text_print(stdout, record->key, record->key_len);
        putchar('\n');
        print_place("delivery", &record->delivery, view->quarantine->config->deliveries_topic);
        print_release(view);
        printf("\nheaders\n");
        show_record_headers(message);
        if (record->is_stub) {
                printf("\nno body: %s\n", quarantine_describe_stub(view->quarantine, record, stub));
        } else {
                printf("\nbody, %zu bytes\n", message->len);
                show_record_body(message->payload, message->len);
        }
}

static void
print_json(const struct show_view *view, const rd_kafka_message_t *message)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        quarantine_put_members(json, view->record);
        show_record_members(json, message);
        json_close_object(json);
        json_print(json);
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct show_view *view = arg;

        (void)index;
        (void)error;
        view->is_shown = 1;
        if (as_raw && message->len > 0)
                (void)fwrite(message->payload, 1, message->len, stdout);
        else if (!as_raw)
                (as_json ? print_json : print_text)(view, message);
        return RANGE_ENOUGH;
}

/* Read the record again, with its body, and print it. */
static int
show_record(const struct quarantine *quarantine)
{
        const struct quarantine_record *record = &quarantine->records[0];
        struct show_view view = {quarantine, record, 0};
        struct range range = {.topic = quarantine->config->quarantine_topic,
                              .partition = record->id.partition,
                              .from = record->id.offset,
                              .to = record->id.offset + 1};
        struct error error;
        enum range_result result =
            range_read(quarantine->config, quarantine->query->bootstrap, &range, 1, on_record, &view, &error);

        if (result != RANGE_DONE)
                return kafka_access_status(result, &error);
        return view.is_shown ? 0
                             : command_fail(EX_NOINPUT, "the record was deleted before it could be shown");
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
        char stub[QUARANTINE_CLAUSE_SIZE];
        int status = quarantine_load(&quarantine, config, &query);

        if (status == 0 && as_raw && quarantine.records[0].is_stub)
                status = command_fail(EX_NOINPUT, "%s",
                                      quarantine_describe_stub(&quarantine, &quarantine.records[0], stub));
        if (status == 0)
                status = show_record(&quarantine);
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
