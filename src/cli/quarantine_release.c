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
#include "cli/release_forecast.h"
#include "cli/release_writer.h"

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
        enum release_outcome outcome;
        char *reason; /* why it was refused or failed, or NULL */
        struct release_forecast forecast;
};

/* The command at work. */
struct release_work {
        const struct quarantine *quarantine;
        struct quarantine_release *releases; /* in the order of the records */
        struct release_forecaster *forecaster;
        struct release_writer *writer;    /* NULL in a dry run */
        struct quarantine_release **open; /* the releases in the open transaction */
        size_t n_open;
};

static void PRINTF_LIKE(3, 4)
    settle(struct quarantine_release *release, enum release_outcome outcome, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        free(release->reason);
        release->outcome = outcome;
        release->reason = mem_vprintf(format, values);
        va_end(values);
}

/* Print the outcome as a line, with the record's reason and delivery-id: an ID may have been mistyped. */
static void
print_text(const struct quarantine_release *release)
{
        const struct quarantine_record *record = release->record;
        const char *reason = record->reason == NULL ? "no reason" : record->reason;
        char id[RELEASE_ID_SIZE];

        printf("%s ", release_id_format(&record->id, id));
        switch (release->outcome) {
        case RELEASE_POSSIBLE:
        case RELEASE_MADE:
                printf("%s", release->outcome == RELEASE_MADE ? "released" : "would be released");
                release_forecast_print(&release->forecast);
                fputs("; it was ", stdout);
                text_print(stdout, reason, strlen(reason));
                fputs(", delivery-id ", stdout);
                text_print(stdout, record->key, record->key_len);
                if (release_forecast_may_repeat(reason))
                        fputs("; its event may have been published before: see the reason in "
                              "gatepost-consumers(7)",
                              stdout);
                break;
        case RELEASE_MADE_BEFORE:
                printf("was released before");
                break;
        default:
                printf("not released: %s", release->reason == NULL ? "interrupted" : release->reason);
                break;
        }
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
                json_member(json, "why", release->reason);
                release_forecast_put_json(json, &release->forecast);
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
        if (n_failed > 0)
                return EX_TEMPFAIL;
        return counts[RELEASE_REFUSED] > 0 ? EX_DATAERR : 0;
}

/* Commit the open transaction, and settle the releases in it. */
static void
commit(struct release_work *work)
{
        struct error error;
        int result = work->writer == NULL ? 0 : release_writer_commit(work->writer, &error);

        for (size_t i = 0; i < work->n_open; i++) {
                if (result == 0)
                        work->open[i]->outcome = RELEASE_MADE;
                else
                        settle(work->open[i], RELEASE_FAILED, "%s", error.text);
        }
        work->n_open = 0;
}

/* Release a record, whose body and headers are those of a message. */
static enum range_answer
on_body(const rd_kafka_message_t *message, const struct quarantine_record *record, struct error *error,
        void *arg)
{
        struct release_work *work = arg;
        const struct config *config = work->quarantine->config;
        struct quarantine_release *release = &work->releases[record - work->quarantine->records];
        char signature[RELEASE_FORECAST_SIGNATURE_SIZE];
        struct error failure;

        if (message->len > config->max_body) {
                settle(release, RELEASE_REFUSED,
                       "its body has %zu bytes, but max_body in [receiver] of this configuration is %zu: "
                       "raise it, "
                       "or use the receiver's configuration",
                       message->len, config->max_body);
                return RANGE_GO_ON;
        }
        if (release_forecast_make(work->forecaster, message, &record->id, signature, &release->forecast) !=
            0) {
                (void)error_set_openssl(error, "the record cannot be evaluated");
                return RANGE_FAIL;
        }
        release->outcome = RELEASE_POSSIBLE;
        if (work->writer == NULL)
                return RANGE_GO_ON;
        if (release_writer_add(work->writer, message, &(struct release_headers){record->id, signature},
                               &failure) != 0)
                settle(release, RELEASE_FAILED, "%s", failure.text);
        else
                work->open[work->n_open++] = release;
        if (release_writer_is_full(work->writer))
                commit(work);
        return RANGE_GO_ON;
}

/* Release the records that were not released before. Returns 0, or an exit status after printing why. */
static int
release_pending(struct release_work *work)
{
        const struct quarantine *quarantine = work->quarantine;
        const struct quarantine_record **records = mem_alloc((quarantine->n + 1) * sizeof(*records));
        size_t n = 0;
        int status;

        for (size_t i = 0; i < quarantine->n; i++) {
                struct quarantine_release *release = &work->releases[i];

                release->record = &quarantine->records[i];
                if (release->record->released_ms != 0)
                        release->outcome = RELEASE_MADE_BEFORE;
                else if (release->record->key_len == 0)
                        settle(release, RELEASE_REFUSED,
                               "the router would quarantine it again: it has no delivery-id");
                else
                        records[n++] = release->record;
        }
        if (n > 0)
                command_note_routers(quarantine->config);
        status = quarantine_read_bodies(quarantine, records, n, on_body, work);
        commit(work);
        for (size_t i = 0; i < n && status == 0; i++) {
                struct quarantine_release *release = &work->releases[records[i] - quarantine->records];

                if (release->outcome == RELEASE_PENDING)
                        settle(release, RELEASE_REFUSED, "%s",
                               records[i]->is_stub ? "only its delivery had the body, and was deleted"
                                                   : "it was deleted from quarantine");
        }
        free(records);
        return status;
}

/* Open what the releases need. Returns 0, or an exit status after printing the reason. */
static int
open_work(struct release_work *work)
{
        const struct quarantine *quarantine = work->quarantine;
        struct error error;

        work->forecaster = release_forecaster_new(quarantine->config, &error);
        if (work->forecaster == NULL)
                return command_fail(EX_OSERR, "%s", error.text);
        if (args.is_dry_run)
                return 0;
        work->writer = release_writer_new(quarantine->config, quarantine->query->bootstrap, &error);
        return work->writer == NULL ? command_fail(EX_CONFIG, "%s", error.text) : 0;
}

static int
release_all(const struct quarantine *quarantine)
{
        struct release_work work = {.quarantine = quarantine,
                                    .releases = mem_alloc((quarantine->n + 1) * sizeof(*work.releases)),
                                    .open = mem_alloc((quarantine->n + 1) * sizeof(*work.open))};
        int status = open_work(&work), summary;

        if (status == 0)
                status = release_pending(&work);
        for (size_t i = 0; i < quarantine->n && !args.as_json && status == 0; i++)
                print_text(&work.releases[i]);
        if (args.as_json && status == 0)
                print_json(&work);
        if (status == 0 && work.writer != NULL && release_writer_is_denied(work.writer)) {
                kafka_access_advise();
                status = EX_NOPERM;
        }
        summary = print_summary(&work);
        release_writer_free(work.writer);
        release_forecaster_free(work.forecaster);
        for (size_t i = 0; i < quarantine->n; i++) {
                free(work.releases[i].reason);
                release_forecast_clear(&work.releases[i].forecast);
        }
        free(work.open);
        free(work.releases);
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
