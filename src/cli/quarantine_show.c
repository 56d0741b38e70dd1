#include "cli/commands.h"

#include <getopt.h>
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

enum show_form { FORM_TEXT, FORM_JSON, FORM_RAW };

struct show_view {
        const struct quarantine *quarantine;
        const struct quarantine_record *record;
        enum show_form form;
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
        if (view->form == FORM_RAW && message->len > 0)
                (void)fwrite(message->payload, 1, message->len, stdout);
        else if (view->form != FORM_RAW)
                (view->form == FORM_JSON ? print_json : print_text)(view, message);
        return RANGE_ENOUGH;
}

/* Read the record again, with its body, and print it. */
static int
show_record(const struct quarantine *quarantine, enum show_form form)
{
        const struct quarantine_record *record = &quarantine->records[0];
        struct show_view view = {quarantine, record, form, 0};
        struct range range = {.topic = quarantine->config->quarantine_topic,
                              .partition = record->id.partition,
                              .from = record->id.offset,
                              .to = record->id.offset + 1};
        struct error error;
        enum range_result result =
            range_read(quarantine->config, quarantine->query->bootstrap, &range, 1, on_record, &view, &error);

        if (result != RANGE_DONE)
                return quarantine_fail_read(quarantine->query, result, &error);
        return view.is_shown ? 0
                             : quarantine_fail(quarantine->query, EX_NOINPUT,
                                               "the record was deleted before it could be shown");
}

static int
show(const struct config *config, struct quarantine_query *query, enum show_form form)
{
        struct quarantine quarantine;
        char stub[QUARANTINE_CLAUSE_SIZE];
        int status;

        query->bootstrap = kafka_access_bootstrap(config, query->bootstrap, &status);
        if (status != 0)
                return status;
        status = quarantine_load(&quarantine, config, query);
        if (status == 0 && form == FORM_RAW && quarantine.records[0].is_stub)
                status = quarantine_fail(query, EX_NOINPUT, "%s",
                                         quarantine_describe_stub(&quarantine, &quarantine.records[0], stub));
        if (status == 0)
                status = show_record(&quarantine, form);
        quarantine_clear(&quarantine);
        return status;
}

/* Parse the arguments. Returns -1 to continue, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct quarantine_query *query,
      enum show_form *form)
{
        static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                                {"raw", no_argument, NULL, 'r'},
                                                {"bootstrap", required_argument, NULL, 'b'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                enum show_form wanted = option == 'j' ? FORM_JSON : FORM_RAW;

                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'b') {
                        query->bootstrap = optarg;
                        continue;
                }
                if (*form != FORM_TEXT && *form != wanted)
                        return command_misused(context, "takes either --json or --raw");
                *form = wanted;
        }
        if (argc - optind != 1)
                return command_misused(context, "needs an ID, as gatepost quarantine list shows it");
        if (quarantine_add_id(argv[optind], query, &error) != 0)
                return command_misused(context, "%s", error.text);
        return -1;
}

int
quarantine_show_run(const struct command_context *context, int argc, char **argv)
{
        struct quarantine_query query = {.command = context->command->name,
                                         .since_ms = QUARANTINE_FROM_BEGINNING};
        enum show_form form = FORM_TEXT;
        int status = parse(context, argc, argv, &query, &form);
        struct config *config;

        if (status < 0) {
                config = config_load(context->file);
                status = config == NULL ? EX_CONFIG : show(config, &query, form);
                config_free(config);
        }
        free(query.ids);
        return status;
}
