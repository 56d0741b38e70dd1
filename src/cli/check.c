#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "config/access_check.h"
#include "config/config.h"
#include "http/listen_check.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "spool/spool_place.h"

static int is_strict, as_json;

/* What has been reported, with --json for the document at the end. */
static struct {
        size_t n_errors, n_warnings;
        struct json_writer *json;
} reported;

static void
put_problem(struct json_writer *json, const struct problem *problem)
{
        char *section =
            problem->argument == NULL ? NULL : mem_printf("%s %s", problem->section, problem->argument);

        json_open_object(json, NULL);
        if (problem->line == 0)
                json_null(json, "line");
        else
                json_number(json, "line", (int64_t)problem->line);
        json_member(json, "level", problem->level == PROBLEM_ERROR ? "error" : "warning");
        json_member(json, "section", section == NULL ? problem->section : section);
        json_member(json, "option", problem->option);
        json_member(json, "message", problem->text);
        json_close_object(json);
        free(section);
}

static void
report(const char *file, const struct problem *problem)
{
        *(problem->level == PROBLEM_ERROR ? &reported.n_errors : &reported.n_warnings) += 1;
        if (as_json)
                put_problem(reported.json, problem);
        else
                problems_print(file, problem);
}

static int
check(const struct config *config)
{
        int status;

        status = tls_check_strength(config, report);
        status |= tls_check_dates(config, report);
        status |= clients_check(config, report);
        status |= listen_check(config, report);
        access_check_files(config, report);
        status |= spool_place_check(config, report);
        status |= access_check_state(config, report);
        return status != 0 || (is_strict && reported.n_warnings > 0) ? EX_CONFIG : 0;
}

/* Return the days for which the certificate is still valid, or 0 without TLS. */
static int
days_left(const struct config *config)
{
        return config == NULL || config->certificate == NULL
                   ? 0
                   : (int)certificate_days_left(config->certificate, clock_now_ms() / 1000);
}

static void
print_json(const char *file, const struct config *config, int status)
{
        struct json_writer *json = reported.json;

        json_close_array(json);
        json_member(json, "file", file);
        json_flag(json, "ok", status == 0);
        json_number(json, "errors", (int64_t)reported.n_errors);
        json_number(json, "warnings", (int64_t)reported.n_warnings);
        if (config != NULL && config->certificate != NULL)
                json_number(json, "certificateDaysLeft", days_left(config));
        json_close_object(json);
        json_print(json);
}

static void
print_summary(const char *file, const struct config *config, int status)
{
        const char *of_warnings = reported.n_warnings == 1 ? "" : "s";

        if (status != 0 && reported.n_errors > 0)
                (void)command_fail(0, "%s is refused: %zu error%s, %zu warning%s", file, reported.n_errors,
                                   reported.n_errors == 1 ? "" : "s", reported.n_warnings, of_warnings);
        else if (status != 0 && reported.n_warnings > 0)
                (void)command_fail(0, "%s is refused because of --strict: %zu warning%s", file,
                                   reported.n_warnings, of_warnings);
        if (status != 0)
                return;
        printf("%s: ok, %zu source%s, %zu event topic%s", file, config->n_sources,
               config->n_sources == 1 ? "" : "s", topic_table_size(config->topics),
               topic_table_size(config->topics) == 1 ? "" : "s");
        if (config->certificate != NULL)
                printf(", certificate valid for %d day%s", days_left(config),
                       days_left(config) == 1 ? "" : "s");
        if (reported.n_warnings > 0)
                printf(", %zu warning%s", reported.n_warnings, of_warnings);
        putchar('\n');
}

static int
run(const char *file)
{
        struct config *config;
        int status;

        if (as_json) {
                reported.json = json_new(1);
                json_open_object(reported.json, NULL);
                json_open_array(reported.json, "problems");
        }
        config = config_load_reporting(file, report);
        status = config == NULL ? EX_CONFIG : check(config);
        if (as_json)
                print_json(file, config, status);
        else
                print_summary(file, config, status);
        config_free(config);
        return status;
}

static const struct command_option options[] = {
    {"strict", NULL, "fail on warnings, too", .flag = &is_strict},
    {"json", NULL, "print JSON", .flag = &as_json},
};

const struct command check_command = {
    .name = "check",
    .help = "check the configuration",
    .run_with_file = run,
    .removed = "online",
    .instead = "gatepost doctor checks the topics in Kafka, and much else",
    COMMAND_OPTIONS(options),
};
