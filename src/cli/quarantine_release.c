#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_append.h"
#include "cli/since.h"
#include "model/judge.h"

struct wish {
        struct quarantine_wish records;
        int has_since;
        int is_dry;
        int is_forced;
        int as_json;
};

/* What happens to a record without reading it again: it was released before, or it cannot be. */
static void
decide(const struct quarantine *quarantine, const struct wish *wish, struct releasing *releasing)
{
        const struct quarantined *record = releasing->record;
        char twin[RELEASE_ID_SIZE], doubt[QUARANTINE_DOUBT_SIZE], reason[QUARANTINE_DOUBT_SIZE + 256];

        if (record->is_stub) {
                (void)snprintf(reason, sizeof(reason),
                               "%s; let a topic take it, then send that body again: gatepost send",
                               quarantine_stub_text(quarantine, record, doubt));
                releasing->outcome = OUTCOME_REFUSED;
                releasing->reason = mem_strdup(reason);
        } else if (record->key_len == 0) {
                releasing->outcome = OUTCOME_REFUSED;
                releasing->reason =
                    mem_strdup("it has no delivery-id, so it would be quarantined again and again");
        } else if (record->reason != NULL &&
                   strcmp(record->reason, judge_reason_name(QUARANTINE_UNPUBLISHABLE)) == 0) {
                releasing->outcome = OUTCOME_REFUSED;
                releasing->reason = mem_strdup("it is a stub: its body is in the topic of deliveries only");
        } else if (record->state == QUARANTINE_RELEASED) {
                releasing->outcome = OUTCOME_BEFORE;
        } else if (record->twin.partition >= 0) {
                (void)snprintf(reason, sizeof(reason), "the same delivery is in quarantine as %s, too",
                               release_id_format(&record->twin, twin));
                releasing->outcome = OUTCOME_REFUSED;
                releasing->reason = mem_strdup(reason);
        } else if (record->state == QUARANTINE_UNSURE && !wish->is_forced) {
                releasing->outcome = OUTCOME_REFUSED;
                (void)snprintf(reason, sizeof(reason),
                               "it may have been released before: %s. Look for an event with its delivery-id "
                               "(gatepost tail --from beginning --until-end --headers); if there is none, "
                               "release it with --force",
                               quarantine_doubt_text(quarantine, record, doubt));
                releasing->reason = mem_strdup(reason);
        }
}

static struct releasing *
decide_all(const struct quarantine *quarantine, const struct wish *wish)
{
        struct releasing *all = mem_alloc((quarantine->n + 1) * sizeof(*all));

        for (size_t i = 0; i < quarantine->n; i++) {
                all[i].record = &quarantine->records[i];
                decide(quarantine, wish, &all[i]);
                if (all[i].outcome != OUTCOME_PENDING && !wish->as_json)
                        outcome_print_text(&all[i], quarantine->config);
        }
        return all;
}

static int
release_all(const struct quarantine *quarantine, const struct wish *wish)
{
        struct quarantine_append append = {.quarantine = quarantine,
                                           .all = decide_all(quarantine, wish),
                                           .n = quarantine->n,
                                           .is_dry = wish->is_dry,
                                           .is_quiet = wish->as_json};
        size_t n_pending = 0;
        int status = 0, summary;

        for (size_t i = 0; i < append.n; i++)
                n_pending += append.all[i].outcome == OUTCOME_PENDING;
        if (n_pending > 0)
                status = quarantine_append_all(&append);
        if (wish->as_json)
                outcome_print_json(append.all, append.n);
        summary = outcome_sum_up(append.all, append.n);
        for (size_t i = 0; i < append.n; i++) {
                free(append.all[i].reason);
                free(append.all[i].quarantine_detail);
        }
        free(append.all);
        return status != 0 ? status : summary;
}

static int
run(const struct config *config, struct wish *wish)
{
        struct quarantine quarantine;
        int status;

        wish->records.bootstrap = kafka_access_bootstrap(config, wish->records.bootstrap, &status);
        if (status != 0)
                return status;
        status = quarantine_look(&quarantine, config, &wish->records);
        if (status == 0)
                status = release_all(&quarantine, wish);
        quarantine_clear(&quarantine);
        return status;
}

static int
parse_ids(const struct command_context *context, int argc, char **argv, struct wish *wish)
{
        struct error error;

        if ((optind == argc) == (wish->records.reason == NULL))
                return command_misused(context,
                                       "needs either IDs, as gatepost quarantine list shows them, or "
                                       "--reason");
        if (optind < argc && wish->has_since)
                return command_misused(context, "--since goes with --reason, not with IDs");
        for (int i = optind; i < argc; i++) {
                if (quarantine_add_id(argv[i], &wish->records, &error) != 0)
                        return command_misused(context, "%s", error.text);
        }
        return -1;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {
            {"reason", required_argument, NULL, 'r'}, {"since", required_argument, NULL, 's'},
            {"dry-run", no_argument, NULL, 'd'},      {"force", no_argument, NULL, 'f'},
            {"json", no_argument, NULL, 'j'},         {"bootstrap", required_argument, NULL, 'b'},
            {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'r' && quarantine_parse_reason(optarg, &wish->records, &error) != 0)
                        return command_misused(context, "--reason: %s", error.text);
                if (option == 's' && since_parse(optarg, &wish->records.since_ms, &error) != 0)
                        return command_misused(context, "--since: %s", error.text);
                wish->has_since |= option == 's';
                wish->is_dry |= option == 'd';
                wish->is_forced |= option == 'f';
                wish->as_json |= option == 'j';
                if (option == 'b')
                        wish->records.bootstrap = optarg;
        }
        return parse_ids(context, argc, argv, wish);
}

int
quarantine_release_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {
            .records = {.command = context->command->name, .since_ms = QUARANTINE_FROM_BEGINNING}};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status < 0) {
                config = config_load(context->file);
                status = config == NULL ? EX_CONFIG : run(config, &wish);
                config_free(config);
        }
        free(wish.records.ids);
        return status;
}
