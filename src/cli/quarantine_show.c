#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/kafka_access.h"
#include "cli/quarantine.h"
#include "cli/show_record.h"

static struct quarantine_query query = {.since_ms = QUARANTINE_FROM_BEGINNING};
static int as_json, as_raw;

struct show_view {
        const struct quarantine *quarantine;
        const struct quarantine_record *record;
        char *body; /* NULL until it is read */
        size_t len;
        int is_shown;
};

/* Return whether the body is still in Kafka. */
static int
has_body(const struct quarantine_record *record)
{
        return !record->is_stub || record->has_delivery;
}

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
print_body(const struct show_view *view)
{
        const struct quarantine_record *record = view->record;
        char text[QUARANTINE_CLAUSE_SIZE];

        if (view->body == NULL) {
                printf("\nno body: %s\n", has_body(record)
                                              ? "it was deleted before it could be read"
                                              : quarantine_describe_doubt(view->quarantine, record, text));
                return;
        }
        printf("\nbody%s, %zu bytes\n", record->is_stub ? " of the delivery" : "", view->len);
        show_record_body(view->body, view->len);
}

static void
print_text(const struct show_view *view, const rd_kafka_message_t *message)
{
        const struct quarantine_record *record = view->record;
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE];

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
        print_body(view);
}

static void
print_json(const struct show_view *view, const rd_kafka_message_t *message)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        quarantine_put_members(json, view->record);
        show_record_members(json, message, view->body, view->len);
        json_close_object(json);
        json_print(json);
}

static enum range_answer
on_body(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct show_view *view = arg;

        (void)index;
        (void)error;
        view->body = mem_alloc(message->len + 1);
        view->len = message->len;
        if (message->len > 0)
                memcpy(view->body, message->payload, message->len);
        return RANGE_ENOUGH;
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct show_view *view = arg;

        (void)index;
        (void)error;
        (as_json ? print_json : print_text)(view, message);
        view->is_shown = 1;
        return RANGE_ENOUGH;
}

/* Read the record at a place. Returns 0, or an exit status after printing the reason. */
static int
read_place(struct show_view *view, const char *topic, const struct release_id *place, range_record *on_each)
{
        const struct quarantine *quarantine = view->quarantine;
        struct range range = {.topic = topic,
                              .partition = place->partition,
                              .from = place->offset,
                              .to = place->offset + 1};
        struct error error;

        return kafka_access_status(range_read(quarantine->config, quarantine->query->bootstrap, &range, 1,
                                              on_each, view, &error),
                                   &error);
}

static int
print_raw(const struct show_view *view)
{
        char doubt[QUARANTINE_CLAUSE_SIZE];

        if (view->body != NULL)
                (void)fwrite(view->body, 1, view->len, stdout);
        else if (has_body(view->record))
                return command_fail(EX_NOINPUT, "the record was deleted before it could be shown");
        else
                return command_fail(EX_NOINPUT, "only the delivery has the body: %s",
                                    quarantine_describe_doubt(view->quarantine, view->record, doubt));
        return 0;
}

static int
print_record(struct show_view *view)
{
        int status =
            read_place(view, view->quarantine->config->quarantine_topic, &view->record->id, on_record);

        if (status == 0 && !view->is_shown)
                return command_fail(EX_NOINPUT, "the record was deleted before it could be shown");
        return status;
}

/* Read the body, and print it, alone or with the record. */
static int
show(const struct quarantine *quarantine)
{
        const struct quarantine_record *record = &quarantine->records[0];
        struct show_view view = {.quarantine = quarantine, .record = record};
        int status = 0;

        if (has_body(record))
                status = read_place(&view, quarantine_body_topic(quarantine, record),
                                    quarantine_body_place(record), on_body);
        if (status == 0)
                status = as_raw ? print_raw(&view) : print_record(&view);
        free(view.body);
        return status;
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
                status = show(&quarantine);
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
