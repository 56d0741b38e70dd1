#include "cli/quarantine_list.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_print.h"
#include "cli/since.h"

static int
compare_times(const void *a, const void *b)
{
        const struct quarantined *one = a, *other = b;

        if (one->timestamp_ms != other->timestamp_ms)
                return one->timestamp_ms < other->timestamp_ms ? -1 : 1;
        return release_id_compare(&one->id, &other->id);
}

static void
print_text(const struct quarantined *record)
{
        const char *reason = record->reason == NULL ? "-" : record->reason;
        const char *detail = record->detail == NULL ? "" : record->detail;
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE];

        printf("%-8s %s ", release_id_format(&record->id, id), clock_format_ms(record->timestamp_ms, when));
        text_print_column(reason, strlen(reason), 18);
        text_print_column(record->key_len == 0 ? "-" : record->key,
                          record->key_len == 0 ? 1 : record->key_len, 36);
        printf("%-8s ", quarantine_print_state(record));
        if (record->came_back.partition >= 0)
                printf("came back as %s; ", release_id_format(&record->came_back, id));
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
        yajl_gen json = json_new(1);

        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < quarantine->n; i++) {
                (void)yajl_gen_map_open(json);
                quarantine_print_members(json, &quarantine->records[i]);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
        json_print(json);
}

static int
list(const struct config *config, struct quarantine_wish *wish, int as_json)
{
        struct quarantine quarantine;
        int status;

        wish->bootstrap = kafka_access_bootstrap(config, wish->bootstrap, &status);
        if (status != 0)
                return status;
        status = quarantine_look(&quarantine, config, wish);
        if (status == 0) {
                if (quarantine.n > 0)
                        qsort(quarantine.records, quarantine.n, sizeof(*quarantine.records), compare_times);
                (as_json ? print_all_json : print_all_text)(&quarantine);
        }
        quarantine_clear(&quarantine);
        return status;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct quarantine_wish *wish,
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
                if (option == 'r' && quarantine_parse_reason(optarg, wish, &error) != 0)
                        return command_misused(context, "--reason: %s", error.text);
                if (option == 's' && since_parse(optarg, &wish->since_ms, &error) != 0)
                        return command_misused(context, "--since: %s", error.text);
                *as_json |= option == 'j';
                if (option == 'b')
                        wish->bootstrap = optarg;
        }
        return optind == argc ? -1 : command_misused(context, "takes no arguments; show takes an ID");
}

int
quarantine_list_run(const struct command_context *context, int argc, char **argv)
{
        struct quarantine_wish wish = {.command = context->command->name,
                                       .since_ms = QUARANTINE_FROM_BEGINNING};
        int as_json = 0, status = parse(context, argc, argv, &wish, &as_json);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = list(config, &wish, as_json);
        config_free(config);
        return status;
}
