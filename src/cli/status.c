#include "cli/status.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/daemon_status.h"
#include "cli/terminal.h"

#define CLEAR_SCREEN "\033[H\033[J"
#define MAX_COUNT 1e15 /* larger numbers are not counts */

static void
clear_status(struct status *status)
{
        json_tree_free(status->report);
        status->report = NULL;
}

double
status_value(const struct json_value *number)
{
        double value = number == NULL || number->type != JSON_NUMBER ? 0 : strtod(number->text, NULL);

        return value >= -MAX_COUNT && value <= MAX_COUNT ? value : 0;
}

double
status_number(const struct json_value *object, const char *name)
{
        return status_value(json_tree_get(object, name));
}

int
status_is_number(const struct json_value *object, const char *name, intmax_t number)
{
        const struct json_value *value = json_tree_get(object, name);
        char literal[32];

        (void)snprintf(literal, sizeof(literal), "%" PRIdMAX, number);
        return value != NULL && value->type == JSON_NUMBER && strcmp(value->text, literal) == 0;
}

double
status_sum(const struct json_value *object)
{
        double sum = 0;

        for (const struct json_value *each = object == NULL ? NULL : object->first; each != NULL;
             each = each->next)
                sum += status_value(each);
        return sum;
}

int
status_flag(const struct json_value *object, const char *name)
{
        const struct json_value *member = json_tree_get(object, name);

        return member != NULL && member->flag;
}

static struct status_rates
count(const struct status *status)
{
        const struct json_value *report = status->report, *requests = json_tree_get(report, "requests");
        struct status_rates counts = {.events = status_sum(json_tree_get(report, "events")),
                                      .duplicates = status_number(report, "duplicates"),
                                      .quarantined = status_sum(json_tree_get(report, "quarantined"))};

        for (const struct json_value *each = requests == NULL ? NULL : requests->first; each != NULL;
             each = each->next) {
                counts.accepted += status_number(each, "accepted");
                counts.refused +=
                    status_sum(each) - status_number(each, "accepted") - status_number(each, "probe");
        }
        return counts;
}

double
status_uptime(const struct status *status)
{
        double uptime = (double)clock_now_ms() / 1000 - status_number(status->report, "startTimeSeconds");

        return uptime > 0 ? uptime : 0;
}

static void
compute_rates(const struct status *status, const struct status *earlier, struct status_rates *rates)
{
        const struct status_rates now = count(status);
        struct status_rates then = {0};
        double seconds;

        rates->since_start = earlier == NULL || status_number(earlier->report, "startTimeSeconds") !=
                                                    status_number(status->report, "startTimeSeconds");
        if (!rates->since_start)
                then = count(earlier);
        rates->seconds =
            rates->since_start ? status_uptime(status) : (double)(status->read_ms - earlier->read_ms) / 1000;
        seconds = rates->seconds < 0.001 ? 0.001 : rates->seconds;
        rates->accepted = (now.accepted - then.accepted) / seconds;
        rates->refused = (now.refused - then.refused) / seconds;
        rates->events = (now.events - then.events) / seconds;
        rates->duplicates = (now.duplicates - then.duplicates) / seconds;
        rates->quarantined = (now.quarantined - then.quarantined) / seconds;
}

static struct {
        int as_json;
        int watches;
        uint64_t watch_ms;
} args = {.watch_ms = 5000};

static void
show(const struct status *status, const struct status *earlier)
{
        struct status_rates rates;

        compute_rates(status, earlier, &rates);
        if (args.as_json) {
                status_print_json(status, &rates, args.watches);
        } else {
                if (args.watches)
                        fputs(isatty(STDOUT_FILENO) ? CLEAR_SCREEN : earlier != NULL ? "\n" : "", stdout);
                status_print(status, &rates);
        }
}

/* Read and print the status, which replaces the earlier one. Returns an exit status. */
static int
ask(const struct config *config, struct status *earlier, int *has_earlier)
{
        struct status status = {0};
        int exit_status = daemon_status_read(config, &status.report);

        status.read_ms = clock_monotonic_ms();
        if (exit_status != 0)
                return exit_status;
        show(&status, *has_earlier ? earlier : NULL);
        exit_status = status_flag(status.report, "ready") ? 0 : EX_TEMPFAIL;
        if (*has_earlier)
                clear_status(earlier);
        *earlier = status;
        *has_earlier = 1;
        return exit_status;
}

static int
run(const struct config *config)
{
        struct status earlier;
        int has_earlier = 0, exit_status;

        terminal_catch_interrupts();
        exit_status = ask(config, &earlier, &has_earlier);
        while (args.watches && has_earlier && !terminal_is_interrupted() && fflush(stdout) == 0) {
                (void)poll(NULL, 0, (int)args.watch_ms);
                if (!terminal_is_interrupted())
                        exit_status = ask(config, &earlier, &has_earlier);
        }
        if (has_earlier)
                clear_status(&earlier);
        return exit_status;
}

static const struct command_option options[] = {
    {"json", NULL, "print JSON", .flag = &args.as_json},
    {"watch", "[TIME]", "repeat every TIME (default: 5s)", .flag = &args.watches,
     .duration_ms = &args.watch_ms, .min = 100, .max = 86400000},
};

const struct command status_command = {
    .name = "status",
    .help = "print the state of the daemon, from its admin endpoint",
    .run = run,
    COMMAND_OPTIONS(options),
};
