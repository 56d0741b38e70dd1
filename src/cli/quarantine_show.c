#include "cli/commands.h"

#include <inttypes.h>
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

static void
print_line(const char *name, const char *text)
{
        printf("%-12s ", name);
        text_print(stdout, text == NULL ? "-" : text, text == NULL ? 1 : strlen(text));
        putchar('\n');
}

static void
print_body(const struct show_view *view)
{
        if (view->body == NULL) {
                printf("\nno body: %s\n", view->record->is_stub ? "only its delivery had it, and was deleted"
                                                                : "it was deleted before it could be read");
                return;
        }
        printf("\nbody%s, %zu bytes\n", view->record->is_stub ? " of the delivery" : "", view->len);
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
        if (record->delivery.partition >= 0)
                printf("%-12s %" PRId32 "/%" PRId64 " of %s\n", "delivery", record->delivery.partition,
                       record->delivery.offset, view->quarantine->config->deliveries_topic);
        print_line("released", record->released_ms == 0 ? "no" : clock_format_ms(record->released_ms, when));
        if (record->came_of.partition >= 0)
                print_line("release of", release_id_format(&record->came_of, id));
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
on_body(const rd_kafka_message_t *message, const struct quarantine_record *record, struct error *error,
        void *arg)
{
        struct show_view *view = arg;

        (void)record, (void)error;
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

        (void)index, (void)error;
        (as_json ? print_json : print_text)(view, message);
        view->is_shown = 1;
        return RANGE_ENOUGH;
}

static int
print_raw(const struct show_view *view)
{
        if (view->body == NULL)
                return command_fail(EX_NOINPUT, view->record->is_stub
                                                    ? "only its delivery had the body, and was deleted"
                                                    : "the record was deleted before it could be shown");
        (void)fwrite(view->body, 1, view->len, stdout);
        return 0;
}

/* Read the record once more, and print it with its body. */
static int
print_record(struct show_view *view)
{
        const struct quarantine *quarantine = view->quarantine;
        const struct release_id *id = &view->record->id;
        struct range range = {.topic = quarantine->config->quarantine_topic,
                              .partition = id->partition,
                              .from = id->offset,
                              .to = id->offset + 1};
        struct error error;
        int status = kafka_access_status(range_read(quarantine->config, quarantine->query->bootstrap, &range,
                                                    1, on_record, view, &error),
                                         &error);

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
        int status = quarantine_read_bodies(quarantine, &record, 1, on_body, &view);

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
