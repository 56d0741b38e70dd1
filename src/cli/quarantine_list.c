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

static int
compare_times(const void *a, const void *b)
{
        const struct quarantine_record *one = a, *other = b;

        if (one->timestamp_ms != other->timestamp_ms)
                return one->timestamp_ms < other->timestamp_ms ? -1 : 1;
        return release_id_compare(&one->id, &other->id);
}

#define KEY_WIDTH 36

static struct quarantine_query query = {.since_ms = QUARANTINE_FROM_BEGINNING};
static int as_json, has_released;

/* Return whether to list a record: a marker hides the record that it names. */
static int
is_listed(const struct quarantine_record *record)
{
        return has_released || record->released_ms == 0;
}

static void
print_text(const struct quarantine_record *record)
{
        const char *reason = record->reason == NULL ? "-" : record->reason;
        const char *detail = record->detail == NULL ? "" : record->detail;
        int has_key = record->key_len > 0;
        char id[RELEASE_ID_SIZE], when[CLOCK_RFC3339_SIZE];

        printf("%-8s %s ", release_id_format(&record->id, id), clock_format_ms(record->timestamp_ms, when));
        text_print_column(reason, strlen(reason), 18);
        text_print_column(has_key ? record->key : "-", has_key ? record->key_len : 1, KEY_WIDTH);
        if (has_released)
                printf("%-8s ", record->released_ms == 0 ? "no" : "yes");
        text_print(stdout, detail, strlen(detail));
        putchar('\n');
}

static void
print_all_text(const struct quarantine *quarantine)
{
        size_t n = 0;

        for (size_t i = 0; i < quarantine->n; i++) {
                if (!is_listed(&quarantine->records[i]))
                        continue;
                if (n++ == 0)
                        printf("%-8s %-24s %-18s %-*s %s%s\n", "ID", "QUARANTINED", "REASON", KEY_WIDTH,
                               "DELIVERY-ID", has_released ? "RELEASED " : "", "DETAIL");
                print_text(&quarantine->records[i]);
        }
}

static void
print_all_json(const struct quarantine *quarantine)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < quarantine->n; i++) {
                if (!is_listed(&quarantine->records[i]))
                        continue;
                json_open_object(json, NULL);
                quarantine_put_members(json, &quarantine->records[i]);
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

static int
parse_reason(const char *text, struct error *error)
{
        return quarantine_parse_reason(text, &query, error);
}

static int
run(const struct config *config)
{
        struct quarantine quarantine;
        int status = quarantine_load(&quarantine, config, &query);

        if (status == 0) {
                if (quarantine.n > 0)
                        qsort(quarantine.records, quarantine.n, sizeof(*quarantine.records), compare_times);
                (as_json ? print_all_json : print_all_text)(&quarantine);
        }
        quarantine_clear(&quarantine);
        return status;
}

static const struct command_option options[] = {
    {"reason", "REASON", "list only records with this reason, such as unknown-kind", .parse = parse_reason},
    {"since", "TIME", "list only records since then: an age, such as 2h, or 2026-11-21T03:04:05Z",
     .time_ms = &query.since_ms},
    {"all", NULL, "list released records, too", .flag = &has_released},
    {"json", NULL, "print JSON", .flag = &as_json},
    KAFKA_ACCESS_BOOTSTRAP(query.bootstrap),
};

const struct command quarantine_list_command = {
    .name = "quarantine list",
    .help = "list the quarantined deliveries",
    .run = run,
    COMMAND_OPTIONS(options),
};
