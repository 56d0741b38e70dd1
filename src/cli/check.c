#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "http/listen_check.h"
#include "spool/config_checks.h"

static int is_strict, as_json;

/* Return the days for which the certificate is still valid, or 0 without TLS. */
static int
days_left(const struct config *config)
{
        return config == NULL || config->certificate == NULL
                   ? 0
                   : (int)certificate_days_left(config->certificate, clock_now_ms() / 1000);
}

static void
print_json(const char *file, const struct config *config, const struct findings *findings, int status)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        json_open_array(json, "findings");
        for (size_t i = 0; i < findings->n; i++)
                finding_put_json(json, &findings->items[i]);
        json_close_array(json);
        json_member(json, "file", file);
        json_flag(json, "ok", status == 0);
        json_number(json, "errors", (int64_t)findings_count(findings, FINDING_ERROR));
        json_number(json, "warnings", (int64_t)findings_count(findings, FINDING_WARNING));
        if (config != NULL && config->certificate != NULL)
                json_number(json, "certificateDaysLeft", days_left(config));
        json_close_object(json);
        json_print(json);
}

static const char *
plural(size_t n)
{
        return n == 1 ? "" : "s";
}

static void
print_summary(const char *file, const struct config *config, const struct findings *findings, int status)
{
        size_t n_errors = findings_count(findings, FINDING_ERROR);
        size_t n_warnings = findings_count(findings, FINDING_WARNING), n_topics;

        if (status != 0) {
                (void)command_fail(0, "%s is refused%s: %zu error%s, %zu warning%s", file,
                                   n_errors == 0 ? " because of --strict" : "", n_errors, plural(n_errors),
                                   n_warnings, plural(n_warnings));
                return;
        }
        n_topics = topic_table_size(config->topics);
        printf("%s: ok, %zu source%s, %zu event topic%s", file, config->n_sources, plural(config->n_sources),
               n_topics, plural(n_topics));
        if (config->certificate != NULL)
                printf(", certificate valid for %d day%s", days_left(config),
                       plural((size_t)days_left(config)));
        if (n_warnings > 0)
                printf(", %zu warning%s", n_warnings, plural(n_warnings));
        putchar('\n');
}

static int
run(const char *file)
{
        struct findings findings = {0};
        struct config *config = config_checks_load(file, &findings);
        int status;

        if (config != NULL)
                listen_check(config, &findings);
        status = findings_status(&findings);
        if (is_strict && findings_count(&findings, FINDING_WARNING) > 0)
                status = EX_CONFIG;
        if (as_json)
                print_json(file, config, &findings, status);
        for (size_t i = 0; !as_json && i < findings.n; i++)
                finding_print(stderr, &findings.items[i]);
        if (!as_json)
                print_summary(file, config, &findings, status);
        findings_clear(&findings);
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
    .becomes_daemon = 1,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
