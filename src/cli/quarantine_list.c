#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/kafka_access.h"
#include "cli/quarantine.h"

static int
compare_times(const void *a, const void *b)
{
        const struct quarantine_record *one = a, *other = b;

        if (one->timestamp_ms != other->timestamp_ms)
                return one->timestamp_ms < other->timestamp_ms ? -1 : 1;
        return release_id_compare(&one->id, &other->id);
}

static void
print_text(const struct quarantine_record *record)
{
        const char *reason = record->reason == NULL ? "-" : record->reason;
        const char *detail = record->detail == NULL ? "" : record->detail;
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE];

        printf("%-8s %s ", release_id_format(&record->id, id), clock_format_ms(record->timestamp_ms, when));
        text_print_column(reason, strlen(reason), 18);
        text_print_column(record->key_len == 0 ? "-" : record->key,
                          record->key_len == 0 ? 1 : record->key_len, 36);
        printf("%-8s ", quarantine_state_name(record));
        if (record->returned_as.partition >= 0)
                printf("came back as %s; ", release_id_format(&record->returned_as, id));
        text_print(stdout, detail, strlen(detail));
        putchar('\n');
}

static void
print_all_text(const struct quarantine *quarantine)
{
        if (quarantine->n > 0)
                printf("%-8s %-24s %-18s %-36s %-8s %s\n", "ID", "QUARANTINED", "REASON", "DELIVERY-ID",
                       "RELEASED", "DETAIL");
        for (size_t i = 0; i < quarantine->n; i++)
                print_text(&quarantine->records[i]);
}

static void
print_all_json(const struct quarantine *quarantine)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < quarantine->n; i++) {
                json_open_object(json, NULL);
                quarantine_put_members(json, &quarantine->records[i]);
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

static int
list(const struct config *config, struct quarantine_query *query, int as_json)
{
        struct quarantine quarantine;
        int status;

        query->bootstrap = kafka_access_bootstrap(config, query->bootstrap, &status);
        if (status != 0)
                return status;
        status = quarantine_load(&quarantine, config, query);
        if (status == 0) {
                if (quarantine.n > 0)
                        qsort(quarantine.records, quarantine.n, sizeof(*quarantine.records), compare_times);
                (as_json ? print_all_json : print_all_text)(&quarantine);
        }
        quarantine_clear(&quarantine);
        return status;
}

/* Parse the arguments. Returns -1 to continue, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct quarantine_query *query,
      int *as_json)
{
        static const struct option options[] = {{"reason", required_argument, NULL, 'r'},
                                                {"since", required_argument, NULL, 's'},
                                                {"json", no_argument, NULL, 'j'},
                                                {"bootstrap", required_argument, NULL, 'b'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'r' && quarantine_parse_reason(optarg, query, &error) != 0)
                        return command_misused(context, "--reason: %s", error.text);
                if (option == 's' && arguments_time(optarg, &query->since_ms, &error) != 0)
                        return command_misused(context, "--since: %s", error.text);
                *as_json |= option == 'j';
                if (option == 'b')
                        query->bootstrap = optarg;
        }
        return optind == argc ? -1 : command_misused(context, "takes no arguments; show takes an ID");
}

int
quarantine_list_run(const struct command_context *context, int argc, char **argv)
{
        struct quarantine_query query = {.command = context->command->name,
                                         .since_ms = QUARANTINE_FROM_BEGINNING};
        int as_json = 0, status = parse(context, argc, argv, &query, &as_json);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = list(config, &query, as_json);
        config_free(config);
        return status;
}
