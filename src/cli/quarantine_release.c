#include "cli/commands.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_append.h"
#include "model/judge.h"

struct release_options {
        struct quarantine_query query;
        int has_since;
        int is_dry_run;
        int is_forced;
        int as_json;
};

static const char *const outcome_names[RELEASE_N_OUTCOMES] = {
    [RELEASE_PENDING] = "failed",        [RELEASE_POSSIBLE] = "would-be-released",
    [RELEASE_ACKNOWLEDGED] = "released", [RELEASE_MADE_BEFORE] = "released-before",
    [RELEASE_REFUSED] = "refused",       [RELEASE_FAILED] = "failed",
};

/* Print what the router will do with a release, if predicted. */
static void
print_prediction(const struct quarantine_release *release)
{
        if (release->topic != NULL) {
                printf(", to be published to %s", release->topic);
        } else if (release->quarantine_reason != NULL) {
                printf(", but this configuration quarantines it again: %s, ", release->quarantine_reason);
                text_print(stdout, release->quarantine_detail, strlen(release->quarantine_detail));
        }
}

/* Print the outcome of a release as a line. */
static void
print_text(const struct quarantine_release *release, const struct config *config)
{
        const struct quarantine_record *record = release->record;
        char text[RELEASE_ID_SIZE];

        printf("%s ", release_id_format(&record->id, text));
        switch (release->outcome) {
        case RELEASE_POSSIBLE:
        case RELEASE_ACKNOWLEDGED:
                printf("%s", release->outcome == RELEASE_POSSIBLE ? "would be released" : "released");
                print_prediction(release);
                break;
        case RELEASE_MADE_BEFORE:
                printf("was released before");
                if (record->release.partition >= 0)
                        printf(", as %s of %s", quarantine_format_place(&record->release, text),
                               config->deliveries_topic);
                if (record->returned_as.partition >= 0)
                        printf(", and came back as %s", release_id_format(&record->returned_as, text));
                break;
        case RELEASE_PENDING:
        case RELEASE_REFUSED:
        case RELEASE_FAILED:
        case RELEASE_N_OUTCOMES:
                printf("not released: %s", release->reason == NULL ? "interrupted" : release->reason);
                break;
        }
        putchar('\n');
}

/* Print all outcomes as a JSON array. */
static void
print_json(const struct quarantine_release *releases, size_t n)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < n; i++) {
                const struct quarantine_release *release = &releases[i];

                json_open_object(json, NULL);
                quarantine_put_members(json, release->record);
                json_member(json, "outcome", outcome_names[release->outcome]);
                json_member(json, "why", release->reason);
                json_member(json, "topic", release->topic);
                json_member(json, "comesBack", release->quarantine_reason);
                if (release->quarantine_detail == NULL)
                        json_null(json, "comesBackDetail");
                else
                        json_bytes(json, "comesBackDetail", release->quarantine_detail,
                                   strlen(release->quarantine_detail));
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

/* Print the number of records with each outcome to stderr. Returns the exit status of the command. */
static int
print_summary(const struct quarantine_release *releases, size_t n)
{
        size_t counts[RELEASE_N_OUTCOMES] = {0}, n_failed;

        for (size_t i = 0; i < n; i++)
                counts[releases[i].outcome]++;
        n_failed = counts[RELEASE_FAILED] + counts[RELEASE_PENDING];
        if (n == 0)
                fprintf(stderr, "gatepost quarantine release: there is nothing to release\n");
        else
                fprintf(stderr, "%zu %s, %zu released before, %zu not released\n",
                        counts[RELEASE_ACKNOWLEDGED] + counts[RELEASE_POSSIBLE],
                        counts[RELEASE_POSSIBLE] > 0 ? "would be released" : "released",
                        counts[RELEASE_MADE_BEFORE], n_failed + counts[RELEASE_REFUSED]);
        if (n_failed > 0)
                return EX_TEMPFAIL;
        return counts[RELEASE_REFUSED] > 0 ? EX_DATAERR : 0;
}

static void PRINTF_LIKE(2, 3) refuse(struct quarantine_release *release, const char *format, ...)
{
        char reason[QUARANTINE_CLAUSE_SIZE + 256];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(reason, sizeof(reason), format, args);
        va_end(args);
        release->outcome = RELEASE_REFUSED;
        release->reason = mem_strdup(reason);
}

/*
 * Settle the outcome of a record that was released before or cannot be released; others stay RELEASE_PENDING.
 */
static void
decide(const struct quarantine *quarantine, const struct release_options *options,
       struct quarantine_release *release)
{
        const struct quarantine_record *record = release->record;
        char id[RELEASE_ID_SIZE], clause[QUARANTINE_CLAUSE_SIZE];

        if (record->is_stub)
                refuse(release, "%s; let a topic take it, then send that body again: gatepost send",
                       quarantine_describe_stub(quarantine, record, clause));
        else if (record->key_len == 0)
                refuse(release, "the router would quarantine it again: it has no delivery-id");
        else if (record->reason != NULL &&
                 strcmp(record->reason, judge_reason_name(QUARANTINE_UNPUBLISHABLE)) == 0)
                refuse(release, "it is a stub: its body is in the topic of deliveries only");
        else if (record->state == QUARANTINE_RELEASED)
                release->outcome = RELEASE_MADE_BEFORE;
        else if (record->earlier_copy.partition >= 0)
                refuse(release, "the same delivery is in quarantine as %s, too",
                       release_id_format(&record->earlier_copy, id));
        else if (record->state == QUARANTINE_UNSURE && !options->is_forced)
                refuse(release,
                       "it may have been released before: %s. Look for an event with its delivery-id "
                       "(gatepost tail --from beginning --until-end --headers); if there is none, release it "
                       "with --force",
                       quarantine_describe_doubt(quarantine, record, clause));
}

static struct quarantine_release *
decide_all(const struct quarantine *quarantine, const struct release_options *options)
{
        struct quarantine_release *releases = mem_alloc((quarantine->n + 1) * sizeof(*releases));

        for (size_t i = 0; i < quarantine->n; i++) {
                releases[i].record = &quarantine->records[i];
                decide(quarantine, options, &releases[i]);
                if (releases[i].outcome != RELEASE_PENDING && !options->as_json)
                        print_text(&releases[i], quarantine->config);
        }
        return releases;
}

static int
release_all(const struct quarantine *quarantine, const struct release_options *options)
{
        struct quarantine_append append = {.quarantine = quarantine,
                                           .releases = decide_all(quarantine, options),
                                           .n = quarantine->n,
                                           .is_dry_run = options->is_dry_run,
                                           .report = options->as_json ? NULL : print_text};
        size_t n_pending = 0;
        int status = 0, summary;

        for (size_t i = 0; i < append.n; i++)
                n_pending += append.releases[i].outcome == RELEASE_PENDING;
        if (n_pending > 0)
                status = quarantine_append_all(&append);
        if (options->as_json)
                print_json(append.releases, append.n);
        summary = print_summary(append.releases, append.n);
        for (size_t i = 0; i < append.n; i++) {
                free(append.releases[i].reason);
                free(append.releases[i].quarantine_detail);
        }
        free(append.releases);
        return status != 0 ? status : summary;
}

static int
run(const struct config *config, struct release_options *options)
{
        struct quarantine quarantine;
        int status;

        options->query.bootstrap = kafka_access_bootstrap(config, options->query.bootstrap, &status);
        if (status != 0)
                return status;
        status = quarantine_load(&quarantine, config, &options->query);
        if (status == 0)
                status = release_all(&quarantine, options);
        quarantine_clear(&quarantine);
        return status;
}

static int
parse_ids(const struct command_context *context, int argc, char **argv, struct release_options *options)
{
        struct error error;

        if ((optind == argc) == (options->query.reason == NULL))
                return command_misused(context,
                                       "needs either IDs, as gatepost quarantine list shows them, or "
                                       "--reason");
        if (optind < argc && options->has_since)
                return command_misused(context, "--since goes with --reason, not with IDs");
        for (int i = optind; i < argc; i++) {
                if (quarantine_add_id(argv[i], &options->query, &error) != 0)
                        return command_misused(context, "%s", error.text);
        }
        return -1;
}

/* Parse the arguments. Returns -1 to continue, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct release_options *options)
{
        static const struct option long_options[] = {
            {"reason", required_argument, NULL, 'r'}, {"since", required_argument, NULL, 's'},
            {"dry-run", no_argument, NULL, 'd'},      {"force", no_argument, NULL, 'f'},
            {"json", no_argument, NULL, 'j'},         {"bootstrap", required_argument, NULL, 'b'},
            {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'r' && quarantine_parse_reason(optarg, &options->query, &error) != 0)
                        return command_misused(context, "--reason: %s", error.text);
                if (option == 's' && arguments_time(optarg, &options->query.since_ms, &error) != 0)
                        return command_misused(context, "--since: %s", error.text);
                options->has_since |= option == 's';
                options->is_dry_run |= option == 'd';
                options->is_forced |= option == 'f';
                options->as_json |= option == 'j';
                if (option == 'b')
                        options->query.bootstrap = optarg;
        }
        return parse_ids(context, argc, argv, options);
}

int
quarantine_release_run(const struct command_context *context, int argc, char **argv)
{
        struct release_options options = {
            .query = {.command = context->command->name, .since_ms = QUARANTINE_FROM_BEGINNING}};
        int status = parse(context, argc, argv, &options);
        struct config *config;

        if (status < 0) {
                config = config_load(context->file);
                status = config == NULL ? EX_CONFIG : run(config, &options);
                config_free(config);
        }
        free(options.query.ids);
        return status;
}
