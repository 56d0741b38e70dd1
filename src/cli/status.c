#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/compiler.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/daemon_status.h"
#include "cli/status_findings.h"

/* `gatepost status`: the figures of the daemon's /status, and what is not in order by them. */

#define LABEL_WIDTH 26
#define SHOWN_REFUSALS 5 /* of those that /status has */

enum format {
        FORMAT_TEXT,
        FORMAT_COUNT,
        FORMAT_SOME, /* a count, if it is not 0 */
        FORMAT_SUM,  /* of the numbers of an object */
        FORMAT_BYTES,
        FORMAT_SPAN,   /* in seconds */
        FORMAT_SINCE,  /* since a moment, in seconds since the epoch */
        FORMAT_EXPIRY, /* a moment */
        FORMAT_TIME,   /* a short time, in seconds */
};

/* A member that is missing or null, as those of another role, is not printed. */
static const struct row {
        const char *label;
        const char *member; /* its path in /status */
        enum format format;
} rows[] = {
    {"running for", "uptimeSeconds", FORMAT_SPAN},
    {"version", "versions.gatepostd", FORMAT_TEXT},
    {"configuration", "configuration.file", FORMAT_TEXT},
    {"loaded", "configuration.loadedSeconds", FORMAT_SINCE},
    {"reload refused", "configuration.refusedReload.timeSeconds", FORMAT_SINCE},
    {"", "configuration.refusedReload.reason", FORMAT_TEXT},
    {"Kafka unreachable since", "kafkaUnreachableSinceSeconds", FORMAT_SINCE},
    {"", "kafkaProblem", FORMAT_TEXT},
    {"answered within, median", "ackSeconds.p50", FORMAT_TIME},
    {"answered within, 99 %", "ackSeconds.p99", FORMAT_TIME},
    {"certificate", "certificateExpirySeconds", FORMAT_EXPIRY},
    {"spool", "spool.directory", FORMAT_TEXT},
    {"spool in use since", "spool.spoolingSinceSeconds", FORMAT_SINCE},
    {"spooled deliveries", "spool.records", FORMAT_COUNT},
    {"oldest one received", "spool.oldestSeconds", FORMAT_SINCE},
    {"segments not counted yet", "spool.uncountedSegments", FORMAT_SOME},
    {"spool size", "spool.bytes", FORMAT_BYTES},
    {"spool_max", "spool.limitBytes", FORMAT_BYTES},
    {"events", "events", FORMAT_SUM},
    {"duplicates dropped", "duplicates", FORMAT_COUNT},
    {"quarantined", "quarantined", FORMAT_SUM},
    {"aborted transactions", "transactions.aborted", FORMAT_SOME},
    {"oldest not published", "oldestRecordSeconds", FORMAT_SINCE},
    {"published within, median", "deliverySeconds.p50", FORMAT_TIME},
    {"published within, 99 %", "deliverySeconds.p99", FORMAT_TIME},
    {"committed within, median", "commitSeconds.p50", FORMAT_TIME},
    {"committed within, 99 %", "commitSeconds.p99", FORMAT_TIME},
    {"remembered delivery-ids", "rememberedIds", FORMAT_COUNT},
    {"state files", "state.files", FORMAT_COUNT},
    {"state size", "state.bytes", FORMAT_BYTES},
};

static const struct json_value *
first_at(const struct json_value *status, const char *path)
{
        const struct json_value *list = json_tree_at(status, path);

        return list == NULL ? NULL : list->first;
}

static void
print_text(const char *text)
{
        text_print(stdout, text, strlen(text));
}

/* Print what stands before a value; NULL: nothing. */
static void
print_label(const char *label)
{
        text_print_column(label == NULL ? "" : label, label == NULL ? 0 : strlen(label), LABEL_WIDTH);
}

static void
print_line(const char *label, const char *text)
{
        print_label(label);
        print_text(text == NULL ? "" : text);
        putchar('\n');
}

/* Return when the daemon wrote the status, in seconds since the epoch by its clock. */
static double
time_of(const struct json_value *status)
{
        return json_tree_number(status, "startTimeSeconds") + json_tree_number(status, "uptimeSeconds");
}

static void
print_bytes(double bytes)
{
        static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
        size_t unit = 0;

        for (; bytes >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
                bytes /= 1024;
        printf(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

static void
print_span(double seconds)
{
        char text[NUMBER_TEXT_SIZE];

        fputs(number_format_span(seconds, text), stdout);
}

/* Print a duration with at least two digits: 850 µs, 1.2 ms, 12 s. */
static void
print_time(double seconds)
{
        const char *unit = seconds < 1e-3 ? "µs" : seconds < 1 ? "ms" : "s";
        double n = seconds < 1e-3 ? seconds * 1e6 : seconds < 1 ? seconds * 1e3 : seconds;

        printf(n > 0 && n < 9.95 ? "%.1f %s" : "%.0f %s", n, unit);
}

/* Return the sum of the numbers in an object. */
static double
sum_of(const struct json_value *object)
{
        double sum = 0;

        for (const struct json_value *each = object->first; each != NULL; each = each->next)
                sum += json_tree_value(each);
        return sum;
}

static void
print_value(const struct json_value *status, const struct json_value *value, enum format format)
{
        double number = json_tree_value(value);

        switch (format) {
        case FORMAT_TEXT:
                print_text(value->type == JSON_STRING ? value->text : "");
                break;
        case FORMAT_COUNT:
        case FORMAT_SOME:
                printf("%.0f", number);
                break;
        case FORMAT_SUM:
                printf("%.0f", sum_of(value));
                break;
        case FORMAT_BYTES:
                print_bytes(number);
                break;
        case FORMAT_SPAN:
                print_span(number);
                break;
        case FORMAT_SINCE:
                print_span(time_of(status) - number);
                printf(" ago");
                break;
        case FORMAT_EXPIRY:
                printf("%s", number > time_of(status) ? "expires in " : "expired");
                if (number > time_of(status))
                        print_span(number - time_of(status));
                break;
        case FORMAT_TIME:
                print_time(number);
                break;
        }
}

static void
print_rows(const struct json_value *status)
{
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const struct json_value *value = json_tree_at(status, rows[i].member);

                if (value == NULL || value->type == JSON_NULL)
                        continue;
                if (rows[i].format == FORMAT_SOME && json_tree_value(value) == 0)
                        continue;
                print_label(rows[i].label);
                print_value(status, value, rows[i].format);
                putchar('\n');
        }
}

/* Print each role with its readiness. */
static void
print_roles(const struct json_value *status)
{
        for (const struct json_value *each = first_at(status, "roles"); each != NULL; each = each->next) {
                if (each->type == JSON_STRING)
                        print_line(each->name, each->text);
        }
}

static void
print_awaiting_restart(const struct json_value *status)
{
        const struct json_value *each = first_at(status, "configuration.awaitingRestart");

        for (; each != NULL; each = each->next) {
                if (each->type == JSON_STRING)
                        print_line("changed, awaits a restart", each->text);
        }
}

static void
print_brokers(const struct json_value *status)
{
        const struct json_value *each = first_at(status, "brokers");

        for (; each != NULL; each = each->next) {
                if (!json_tree_is_true(each, "up"))
                        print_line("broker down", json_tree_text(each, "broker"));
        }
}

/* Print the lag. A router knows it where it knows its position: 0 may mean that it has looked nowhere. */
static void
print_lag(const struct json_value *status)
{
        const struct json_value *each = first_at(status, "partitions");
        size_t n = 0, n_unknown = 0;

        if (json_tree_get(status, "lagRecords") == NULL)
                return;
        for (; each != NULL; each = each->next) {
                const struct json_value *offset = json_tree_get(each, "committedOffset");
                const char *state = json_tree_text(each, "state");

                if (state != NULL && strcmp(state, "standby") == 0)
                        continue;
                n++;
                n_unknown += offset != NULL && offset->type == JSON_NULL &&
                             (state == NULL || strcmp(state, "unassigned") != 0);
        }
        print_label("waiting to be published");
        printf("%.0f", json_tree_number(status, "lagRecords"));
        if (n == 0)
                printf(" known; this router has no partition");
        else if (n_unknown > 0)
                printf(" known; not known in %zu of %zu partitions", n_unknown, n);
        putchar('\n');
}

/* Print the outcomes of each source's requests that are not 0. */
static void
print_requests(const struct json_value *status)
{
        for (const struct json_value *each = first_at(status, "requests"); each != NULL; each = each->next) {
                int is_of_none = each->name == NULL || *each->name == '\0', n = 0;

                if (is_of_none && sum_of(each) == 0)
                        continue;
                printf("%s", is_of_none ? "requests to no source: " : "source ");
                print_text(is_of_none ? "" : each->name);
                printf("%s", is_of_none ? "" : ": ");
                for (const struct json_value *outcome = each->first; outcome != NULL;
                     outcome = outcome->next) {
                        if (outcome->name == NULL || json_tree_value(outcome) == 0)
                                continue;
                        printf("%s", n++ > 0 ? ", " : "");
                        print_text(outcome->name);
                        printf(" %.0f", json_tree_value(outcome));
                }
                printf("%s\n", n == 0 ? "no request" : "");
        }
}

/* Print the last refusals: which, when, and from where. */
static void
print_refusals(const struct json_value *status)
{
        const struct json_value *each = first_at(status, "refusals");

        for (int i = 0; each != NULL && i < SHOWN_REFUSALS; each = each->next, i++) {
                const char *outcome = json_tree_text(each, "outcome"),
                           *client = json_tree_text(each, "client"), *detail = json_tree_text(each, "detail");
                double count = json_tree_number(each, "count");

                printf("refused ");
                print_span(time_of(status) - json_tree_number(each, "timeSeconds"));
                printf(" ago: %.0f from ", count);
                print_text(client == NULL ? "" : client);
                printf(", ");
                print_text(outcome == NULL ? "" : outcome);
                printf(": ");
                print_text(detail == NULL ? "" : detail);
                putchar('\n');
        }
}

static void
print_report(const struct json_value *status, const struct findings *findings)
{
        printf("%s\n", json_tree_is_true(status, "ready") ? "ready" : "not ready");
        print_roles(status);
        print_rows(status);
        print_awaiting_restart(status);
        print_brokers(status);
        print_lag(status);
        print_requests(status);
        print_refusals(status);
        for (size_t i = 0; i < findings->n; i++)
                finding_print(stdout, &findings->items[i]);
}

/* Print the document of the daemon, with the findings. */
static void
print_json(const struct json_value *status, const struct findings *findings)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        for (const struct json_value *each = status->first; each != NULL; each = each->next)
                json_tree_write(json, each);
        json_open_array(json, "findings");
        for (size_t i = 0; i < findings->n; i++)
                finding_put_json(json, &findings->items[i]);
        json_close_array(json);
        json_close_object(json);
        json_print(json);
}

static struct {
        int as_json;
} args;

static int
run(const char *file)
{
        struct findings findings = {0};
        struct json_value *status;
        int exit_status = daemon_status_read(file, &status);

        if (exit_status != 0)
                return exit_status;
        status_findings(status, &findings);
        if (args.as_json)
                print_json(status, &findings);
        else
                print_report(status, &findings);
        exit_status = json_tree_is_true(status, "ready") ? 0 : EX_TEMPFAIL;
        findings_clear(&findings);
        json_tree_free(status);
        return exit_status;
}

static const struct command_option options[] = {
    {"json", NULL, "print JSON", .flag = &args.as_json},
};

const struct command status_command = {
    .name = "status",
    .help = "print the state of the daemon, from its admin endpoint",
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
