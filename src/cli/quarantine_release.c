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
#include "cli/quarantine.h"
#include "cli/quarantine_bodies.h"
#include "cli/release_writer.h"
#include "kafka/message.h"
#include "model/judge.h"

static struct {
        struct quarantine_query query;
        char **ids;
        int is_dry_run;
        int as_json;
} args = {.query = {.since_ms = QUARANTINE_FROM_BEGINNING}};

enum release_outcome {
        RELEASE_PENDING,
        RELEASE_POSSIBLE, /* in a dry run: it would be released */
        RELEASE_MADE,
        RELEASE_MADE_BEFORE,
        RELEASE_REFUSED, /* it cannot be released, for a reason */
        RELEASE_FAILED,  /* Kafka did not accept it, for a reason */
        RELEASE_N_OUTCOMES,
};

static const char *const outcome_names[RELEASE_N_OUTCOMES] = {
    [RELEASE_PENDING] = "failed",  [RELEASE_POSSIBLE] = "would-be-released",
    [RELEASE_MADE] = "released",   [RELEASE_MADE_BEFORE] = "released-before",
    [RELEASE_REFUSED] = "refused", [RELEASE_FAILED] = "failed",
};

/* A record to release. */
struct quarantine_release {
        const struct quarantine_record *record;
        struct release_work *work;
        enum release_outcome outcome;
        const char *topic; /* in a dry run: the topic of its event; NULL: none */
        char *why;         /* why it was refused or failed, or would be quarantined again; or NULL */
};

/* The command at work. */
struct release_work {
        const struct quarantine *quarantine;
        struct quarantine_release *releases; /* in the order of the records */
        struct release_writer *writer;       /* NULL in a dry run */
        struct judge *judge;                 /* of a dry run */
        const struct event_rules **rules;    /* of the judge */
        int is_denied;
};

static void PRINTF_LIKE(3, 4)
    settle(struct quarantine_release *release, enum release_outcome outcome, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        free(release->why);
        release->outcome = outcome;
        release->why = mem_vprintf(format, values);
        va_end(values);
}

/* Print the outcome as a line, with the record's reason and delivery-id: an ID may have been mistyped. */
static void
print_text(const struct quarantine_release *release)
{
        const struct quarantine_record *record = release->record;
        const char *reason = record->reason == NULL ? "quarantined" : record->reason;
        char id[RELEASE_ID_SIZE];

        printf("%s %s", release_id_format(&record->id, id), outcome_names[release->outcome]);
        if (release->topic != NULL)
                printf(" to %s", release->topic);
        if (release->why != NULL) {
                fputs(": ", stdout);
                text_print(stdout, release->why, strlen(release->why));
        }
        fputs(", was ", stdout);
        text_print(stdout, reason, strlen(reason));
        fputs(", delivery-id ", stdout);
        text_print(stdout, record->key, record->key_len);
        putchar('\n');
}

static void
print_json(const struct release_work *work)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < work->quarantine->n; i++) {
                const struct quarantine_release *release = &work->releases[i];

                json_open_object(json, NULL);
                quarantine_put_members(json, release->record);
                json_member(json, "outcome", outcome_names[release->outcome]);
                json_member(json, "topic", release->topic);
                if (release->why == NULL)
                        json_null(json, "why");
                else
                        json_bytes(json, "why", release->why, strlen(release->why));
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

/* Print the number of records with each outcome to stderr. Returns the exit status of the command. */
static int
print_summary(const struct release_work *work)
{
        size_t counts[RELEASE_N_OUTCOMES] = {0}, n_failed;

        for (size_t i = 0; i < work->quarantine->n; i++)
                counts[work->releases[i].outcome]++;
        n_failed = counts[RELEASE_FAILED] + counts[RELEASE_PENDING];
        if (work->quarantine->n == 0)
                fprintf(stderr, "gatepost quarantine release: there is nothing to release\n");
        else
                fprintf(stderr, "%zu %s, %zu released before, %zu not released\n",
                        counts[RELEASE_MADE] + counts[RELEASE_POSSIBLE],
                        args.is_dry_run ? "would be released" : "released", counts[RELEASE_MADE_BEFORE],
                        n_failed + counts[RELEASE_REFUSED]);
        if (work->is_denied) {
                kafka_access_advise();
                return EX_NOPERM;
        }
        if (n_failed > 0)
                return EX_TEMPFAIL;
        return counts[RELEASE_REFUSED] > 0 ? EX_DATAERR : 0;
}

static void
on_written(const char *failure, int is_denied, void *arg)
{
        struct quarantine_release *release = arg;

        release->work->is_denied |= is_denied;
        if (failure != NULL)
                settle(release, RELEASE_FAILED, "%s", failure);
        else
                release->outcome = RELEASE_MADE;
}

/* Find out where the event would be published by this configuration. Returns 0, or -1 if memory fails. */
static int
judge_release(struct quarantine_release *release, const rd_kafka_message_t *message)
{
        struct verdict verdict = {.action = VERDICT_QUARANTINE, .reason = QUARANTINE_UNKNOWN_SOURCE};
        struct release_work *work = release->work;
        struct record record;

        message_record(message, &record);
        if (config_find_source(work->quarantine->config, record.source.data, record.source.len) != NULL &&
            judge_decide_body(work->judge, &record, &verdict) != 0)
                return -1;
        release->outcome = RELEASE_POSSIBLE;
        if (verdict.action == VERDICT_PUBLISH)
                release->topic = verdict.topic->topic;
        else if (verdict.action == VERDICT_QUARANTINE)
                settle(release, RELEASE_POSSIBLE, "the router would quarantine it again as %s",
                       judge_reason_name(verdict.reason));
        return 0;
}

static enum range_answer
on_body(const rd_kafka_message_t *message, const struct quarantine_record *record, struct error *error,
        void *arg)
{
        struct release_work *work = arg;
        struct quarantine_release *release = &work->releases[record - work->quarantine->records];

        if (release->outcome != RELEASE_PENDING)
                return RANGE_GO_ON;
        if (args.is_dry_run && judge_release(release, message) != 0) {
                (void)error_set(error, "out of memory");
                return RANGE_FAIL;
        }
        if (!args.is_dry_run && release_writer_add(work->writer, message, &record->id, release, error) != 0)
                return RANGE_FAIL;
        return RANGE_GO_ON;
}

/* Decide what needs no body. Returns the number of records that are left to release. */
static size_t
sort_out(struct release_work *work)
{
        size_t n = 0;

        for (size_t i = 0; i < work->quarantine->n; i++) {
                struct quarantine_release *release = &work->releases[i];

                release->record = &work->quarantine->records[i];
                release->work = work;
                if (release->record->released_ms != 0)
                        release->outcome = RELEASE_MADE_BEFORE;
                else if (release->record->key_len == 0)
                        settle(release, RELEASE_REFUSED,
                               "the router would quarantine it again: it has no delivery-id");
                else
                        n++;
        }
        return n;
}

/* Release the records that were not released before. Returns 0, or an exit status after printing why. */
static int
release_pending(struct release_work *work)
{
        const struct quarantine *quarantine = work->quarantine;
        int status;

        if (sort_out(work) == 0)
                return 0;
        command_note_routers(quarantine->config);
        status = quarantine_bodies_read(quarantine, on_body, work);
        if (work->writer != NULL)
                release_writer_finish(work->writer);
        for (size_t i = 0; i < quarantine->n && status == 0; i++) {
                struct quarantine_release *release = &work->releases[i];

                if (release->outcome == RELEASE_PENDING)
                        settle(release, RELEASE_REFUSED, "%s",
                               release->record->is_stub ? "only its delivery had the body, and was deleted"
                                                        : "it was deleted from quarantine");
        }
        return status;
}

/* Open what the releases need. Returns 0, or an exit status after printing the reason. */
static int
open_work(struct release_work *work)
{
        const struct config *config = work->quarantine->config;
        struct error error;

        if (!args.is_dry_run) {
                work->writer =
                    release_writer_new(config, work->quarantine->query->bootstrap, on_written, &error);
                return work->writer == NULL ? command_fail(EX_CONFIG, "%s", error.text) : 0;
        }
        work->rules = mem_alloc((config->n_sources + 1) * sizeof(const struct event_rules *));
        for (size_t i = 0; i < config->n_sources; i++)
                work->rules[i] = &config->sources[i].rules;
        work->judge = judge_new(work->rules, config->n_sources, config->topics, NULL);
        return work->judge == NULL ? command_fail(EX_OSERR, "out of memory") : 0;
}

static void
close_work(struct release_work *work)
{
        release_writer_free(work->writer);
        judge_free(work->judge);
        free(work->rules);
        for (size_t i = 0; i < work->quarantine->n; i++)
                free(work->releases[i].why);
        free(work->releases);
}

static int
release_all(const struct quarantine *quarantine)
{
        struct release_work work = {.quarantine = quarantine,
                                    .releases = mem_alloc((quarantine->n + 1) * sizeof(*work.releases))};
        int status = open_work(&work), summary = 0;

        if (status == 0) {
                status = release_pending(&work);
                for (size_t i = 0; i < quarantine->n && !args.as_json; i++)
                        print_text(&work.releases[i]);
                if (args.as_json)
                        print_json(&work);
                summary = print_summary(&work);
        }
        close_work(&work);
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
