#include "cli/commands.h"

#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/audit_expected.h"
#include "cli/audit_found.h"
#include "cli/command.h"
#include "cli/kafka_access.h"

static struct {
        const char *bootstrap;
        int64_t since_ms;
        int as_json;
} args = {.since_ms = AUDIT_FROM_BEGINNING};

static void
on_finding(const struct tally_finding *finding, void *arg)
{
        struct audit *audit = arg;

        audit_result_add(&audit->result, finding);
}

/* Run as many passes as necessary. Returns 0, or an exit status after printing the reason. */
static int
run_passes(struct audit *audit)
{
        size_t n_left;
        int status = audit_expected_read_exceptions(audit);

        if (status != 0)
                return status;
        do {
                status = audit_expected_read(audit);
                if (status == 0)
                        status = audit_found_read(audit);
                if (status != 0)
                        return status;
                audit->n_passes++;
                n_left = tally_end_pass(audit->tally, on_finding, audit);
                if (n_left > 0 && isatty(STDERR_FILENO))
                        fprintf(stderr,
                                "differences found, or a router is running: reading again, %zu pass%s\n",
                                n_left, n_left == 1 ? "" : "es");
        } while (n_left > 0);
        audit_found_identify_examples(audit);
        return 0;
}

static int
run_plan(const struct audit_plan *plan)
{
        struct error error;
        struct audit *audit = audit_work_new(plan, &error);
        int status;

        if (audit == NULL)
                return command_fail(EX_OSERR, "%s", error.text);
        status = run_passes(audit);
        if (status == 0) {
                (args.as_json ? audit_result_print_json : audit_result_print_text)(&audit->result);
                status = audit_result_status(&audit->result);
        }
        audit_work_free(audit);
        return status;
}

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap);
        struct audit_plan plan;

        if (status != 0)
                return status;
        status = audit_plan_make(config, args.bootstrap, args.since_ms, &plan);
        if (status == 0)
                status = run_plan(&plan);
        audit_plan_free(&plan);
        return status;
}

static const struct command_option options[] = {
    {"since", "TIME", "audit only deliveries since then: an age, such as 2h, or 2026-11-21T03:04:05Z",
     .time_ms = &args.since_ms},
    {"json", NULL, "print JSON", .flag = &args.as_json},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command audit_command = {
    .name = "audit",
    .help = "count lost, duplicated and unexpected events",
    .run = run,
    COMMAND_OPTIONS(options),
};
