#include "cli/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_append.h"
#include "model/judge.h"

static struct {
        struct quarantine_query query;
        char **ids;
        int is_dry_run;
        int is_forced;
        int as_json;
} args = {.query = {.since_ms = QUARANTINE_FROM_BEGINNING}};

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
                if (release->record->is_stub)
                        fputs(" if that topic accepts it now", stdout);
        } else if (release->quarantine_reason != NULL) {
                printf(", but this configuration quarantines it again: %s, ", release->quarantine_reason);
                text_print(stdout, release->quarantine_detail, strlen(release->quarantine_detail));
        }
}

/* Whether the event of a delivery with this reason may have been published from another one, or before. */
static int
may_repeat(const char *reason)
{
        static const enum quarantine_reason all[] = {QUARANTINE_REPLAYED_SIGNATURE,
                                                     QUARANTINE_CONFLICTING_BODY, QUARANTINE_UNVERIFIED,
                                                     QUARANTINE_SPOOLED_TOO_LONG};

        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
                if (strcmp(reason, judge_reason_name(all[i])) == 0)
                        return 1;
        }
        return 0;
}

/* Print which record it is: an ID may have been mistyped, or be another number. */
static void
print_origin(const struct quarantine_record *record)
{
        const char *reason = record->reason == NULL ? "no reason" : record->reason;

        fputs("; it was ", stdout);
        text_print(stdout, reason, strlen(reason));
        fputs(", delivery-id ", stdout);
        text_print(stdout, record->key, record->key_len);
        if (may_repeat(reason))
                fputs("; its event may have been published before: see the reason in gatepost-consumers(7)",
                      stdout);
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
                print_origin(record);
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
        va_list values;

        va_start(values, format);
        (void)vsnprintf(reason, sizeof(reason), format, values);
        va_end(values);
        release->outcome = RELEASE_REFUSED;
        release->reason = mem_strdup(reason);
}

/*
 * Settle the outcome of a record that was released before or cannot be released; others stay RELEASE_PENDING.
 */
static void
decide(const struct quarantine *quarantine, struct quarantine_release *release)
{
        const struct quarantine_record *record = release->record;
        char id[RELEASE_ID_SIZE], clause[QUARANTINE_CLAUSE_SIZE];

        if (record->key_len == 0)
                refuse(release, "the router would quarantine it again: it has no delivery-id");
        else if (record->state == QUARANTINE_RELEASED)
                release->outcome = RELEASE_MADE_BEFORE;
        else if (record->is_stub && !record->has_delivery)
                refuse(release, "only the delivery has the body: %s",
                       quarantine_describe_doubt(quarantine, record, clause));
        else if (record->earlier_copy.partition >= 0)
                refuse(release, "the same delivery is in quarantine as %s, too",
                       release_id_format(&record->earlier_copy, id));
        else if (record->state == QUARANTINE_UNSURE && !args.is_forced)
                refuse(release,
                       "it may have been released before: %s. Look for an event with its delivery-id "
                       "(gatepost tail --from beginning --until-end --headers); if there is none, release it "
                       "with --force",
                       quarantine_describe_doubt(quarantine, record, clause));
}

static struct quarantine_release *
decide_all(const struct quarantine *quarantine)
{
        struct quarantine_release *releases = mem_alloc((quarantine->n + 1) * sizeof(*releases));

        for (size_t i = 0; i < quarantine->n; i++) {
                releases[i].record = &quarantine->records[i];
                decide(quarantine, &releases[i]);
                if (releases[i].outcome != RELEASE_PENDING && !args.as_json)
                        print_text(&releases[i], quarantine->config);
        }
        return releases;
}

static int
release_all(const struct quarantine *quarantine)
{
        struct quarantine_append append = {.quarantine = quarantine,
                                           .releases = decide_all(quarantine),
                                           .n = quarantine->n,
                                           .is_dry_run = args.is_dry_run,
                                           .report = args.as_json ? NULL : print_text};
        size_t n_pending = 0;
        int status = 0, summary;

        for (size_t i = 0; i < append.n; i++)
                n_pending += append.releases[i].outcome == RELEASE_PENDING;
        if (n_pending > 0) {
                command_note_routers(quarantine->config);
                status = quarantine_append_all(&append);
        }
        if (args.as_json)
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
parse_reason(const char *text, struct error *error)
{
        return quarantine_parse_reason(text, &args.query, error);
}

static int
check(struct error *error)
{
        if ((*args.ids == NULL) == (args.query.reason == NULL))
                return error_set(error,
                                 "needs either IDs, as gatepost quarantine list shows them, or --reason");
        if (*args.ids != NULL && args.query.since_ms != QUARANTINE_FROM_BEGINNING)
                return error_set(error, "--since goes with --reason, not with IDs");
        for (char **id = args.ids; *id != NULL; id++) {
                if (quarantine_add_id(*id, &args.query, error) != 0)
                        return -1;
        }
        return 0;
}

static int
run(const struct config *config)
{
        struct quarantine quarantine;
        int status = quarantine_load(&quarantine, config, &args.query);

        if (status == 0)
                status = release_all(&quarantine);
        quarantine_clear(&quarantine);
        free(args.query.ids);
        return status;
}

static const struct command_option options[] = {
    {NULL, "[ID ...]", "release these records", .rest = &args.ids},
    {"reason", "REASON", "release all unreleased records with this reason instead", .parse = parse_reason},
    {"since", "TIME", "with --reason, only records since then: an age, such as 2h, or 2026-11-21T03:04:05Z",
     .time_ms = &args.query.since_ms},
    {"dry-run", NULL, "only print what would happen", .flag = &args.is_dry_run},
    {"force", NULL, "release records so old that an earlier release cannot be ruled out, too",
     .flag = &args.is_forced},
    {"json", NULL, "print JSON", .flag = &args.as_json},
    KAFKA_ACCESS_BOOTSTRAP(args.query.bootstrap),
};

const struct command quarantine_release_command = {
    .name = "quarantine release",
    .help = "send records in quarantine to the router again",
    .check = check,
    .run = run,
    COMMAND_OPTIONS(options),
};
