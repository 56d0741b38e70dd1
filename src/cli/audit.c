#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/audit_expected.h"
#include "cli/audit_found.h"
#include "cli/audit_print.h"
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

        audit->total.n_faults[finding->fault] += finding->n;
        audit->topics[finding->place.topic].n_faults[finding->fault] += finding->n;
        if (audit->n_examples < AUDIT_MAX_EXAMPLES)
                audit->examples[audit->n_examples++].finding = *finding;
}

static void
add_partition(struct audit_partition *all, const struct audit_partition *one)
{
        if (one->n_checked > 0 && (all->n_checked == 0 || one->first_checked_ms < all->first_checked_ms))
                all->first_checked_ms = one->first_checked_ms;
        if (one->n_waiting > 0 && (all->n_waiting == 0 || one->first_waiting_ms < all->first_waiting_ms))
                all->first_waiting_ms = one->first_waiting_ms;
        if (one->last_checked_ms > all->last_checked_ms)
                all->last_checked_ms = one->last_checked_ms;
        if (one->last_unchecked_ms > all->last_unchecked_ms)
                all->last_unchecked_ms = one->last_unchecked_ms;
        all->n_read += one->n_read;
        all->n_checked += one->n_checked;
        all->n_waiting += one->n_waiting;
        all->n_unjudged += one->n_unjudged;
        all->n_results_deleted += one->n_results_deleted;
}

/* Run as many passes as necessary. Returns 0, or an exit status after printing the reason. */
static int
compare(struct audit *audit)
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
        for (size_t t = 0; t < audit->plan->n_topics; t++) {
                audit->total.n_required += audit->topics[t].n_required;
                audit->total.n_read += audit->topics[t].n_read;
                audit->total.n_older += audit->topics[t].n_older;
        }
        for (size_t p = 0; p < audit->plan->n_deliveries; p++)
                add_partition(&audit->deliveries, &audit->partitions[p]);
        audit_found_identify_examples(audit);
        return 0;
}

static int
has_faults(const struct audit *audit)
{
        for (size_t f = 0; f < TALLY_N_FAULTS; f++) {
                if (audit->total.n_faults[f] > 0)
                        return 1;
        }
        for (size_t p = 0; p < audit->plan->n_deliveries; p++) {
                if (audit_plan_deleted(audit->plan, p) > 0)
                        return 1;
        }
        return 0;
}

/* Return the exit status of a finished audit. */
static int
find_status(const struct audit *audit)
{
        const struct audit_partition *all = &audit->deliveries;

        if (has_faults(audit))
                return EX_DATAERR;
        for (size_t p = 0; p < audit->plan->n_deliveries; p++) {
                if (audit_work_waits(audit, p))
                        return EX_TEMPFAIL;
        }
        if (all->n_checked == 0)
                return EX_NOINPUT;
        if (audit->plan->since_ms != AUDIT_FROM_BEGINNING && all->n_unjudged + all->n_results_deleted > 0)
                return EX_NOINPUT;
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
        status = compare(audit);
        if (status == 0) {
                (args.as_json ? audit_print_json : audit_print_text)(audit);
                status = find_status(audit);
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
