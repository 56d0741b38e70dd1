#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "kafka/topics_check.h"

/* Sets what `gatepost topics list` finds wrong in the settings of topics. */

#define LOOKS 50
#define PAUSE_MS 100

static struct {
        int is_confirmed;
        const char *bootstrap;
} args;

/* The topics, what is wrong with them, and the changes that mend it. */
struct topics_fix {
        const struct config *config;
        rd_kafka_t *client;
        struct topic_need *needs;
        size_t n;
        struct findings findings;
        struct topic_changes changes;
};

/* Look at the topics. Return 0, or an exit status after printing the reason. */
static int
look(struct topics_fix *fix)
{
        struct topic_state *states = mem_alloc(fix->n * sizeof(*states));
        struct error error;
        int status = 0;

        findings_clear(&fix->findings);
        fix->changes.n = 0;
        if (topics_describe(fix->client, fix->needs, fix->n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
        for (size_t i = 0; i < fix->n && status == 0; i++)
                topics_check(fix->config, &fix->needs[i], &states[i], 1, &fix->findings, &fix->changes);
        free(states);
        return status;
}

static void
print_changes(const struct topic_changes *changes)
{
        for (size_t i = 0; i < changes->n; i++) {
                const struct topic_change *change = &changes->items[i];

                printf("%s: %s: %s -> %s\n", change->topic, change->setting, change->before, change->after);
        }
        (void)fflush(stdout);
}

/* Return the number of changes of the first one's topic, which follow it. */
static size_t
count_of_topic(const struct topic_change *changes, size_t n)
{
        size_t i = 0;

        while (i < n && strcmp(changes[i].topic, changes[0].topic) == 0)
                i++;
        return i;
}

/* Make the changes, the others too when those of one topic fail. Return the first failure's exit status. */
static int
apply(const struct topics_fix *fix)
{
        int status = 0;

        for (size_t i = 0, n; i < fix->changes.n; i += n) {
                const struct topic_change *first = &fix->changes.items[i];
                struct error error;
                int is_denied;

                n = count_of_topic(first, fix->changes.n - i);
                if (topic_changes_apply(fix->client, first, n, KAFKA_ACCESS_TIMEOUT_MS, &is_denied, &error) ==
                    0)
                        continue;
                (void)command_fail(0, "%s: %s", first->topic, error.text);
                if (status == 0)
                        status = is_denied ? EX_NOPERM : EX_UNAVAILABLE;
        }
        if (status == EX_NOPERM)
                kafka_access_advise();
        return status;
}

/* Wait until the brokers know the changes, and print what is still wrong. Return an exit status. */
static int
verify(struct topics_fix *fix)
{
        int status = look(fix);

        for (int looks = 1; looks < LOOKS && status == 0 && fix->changes.n > 0; looks++) {
                clock_sleep_ms(PAUSE_MS);
                status = look(fix);
        }
        for (size_t i = 0; i < fix->findings.n && status == 0; i++)
                finding_print(stdout, &fix->findings.items[i]);
        if (status != 0)
                return status;
        return findings_count(&fix->findings, FINDING_ERROR) > 0 ? EX_DATAERR : 0;
}

/* Print the changes, and make them if that was confirmed. Return an exit status. */
static int
fix_all(struct topics_fix *fix)
{
        int status = look(fix);

        if (status != 0)
                return status;
        print_changes(&fix->changes);
        if (fix->changes.n > 0 && !args.is_confirmed)
                return command_fail(EX_DATAERR, "nothing was changed; --yes makes these changes");
        if (fix->changes.n == 0)
                printf("no setting needs a change\n");
        else
                status = apply(fix);
        return status != 0 ? status : verify(fix);
}

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap);
        struct topics_fix fix = {.config = config};

        if (status != 0)
                return status;
        if (config->embedded)
                return command_fail(EX_USAGE, "the embedded broker has no settings of topics");
        fix.client = kafka_access_open(config, args.bootstrap);
        if (fix.client == NULL)
                return EX_CONFIG;
        fix.needs = topics_needed(config, &fix.n);
        status = fix_all(&fix);
        findings_clear(&fix.findings);
        free(fix.changes.items);
        free(fix.needs);
        rd_kafka_destroy(fix.client);
        return status;
}

static const struct command_option options[] = {
    {"yes", NULL, "make the changes instead of only showing them", .flag = &args.is_confirmed},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command topics_fix_command = {
    .name = "topics fix",
    .help = "correct the settings of topics that topics list reports",
    .run = run,
    COMMAND_OPTIONS(options),
};
