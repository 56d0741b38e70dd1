#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/arguments.h"
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/diagnosis.h"
#include "cli/source_choice.h"
#include "model/delivery_check.h"

#define NOW INT64_MAX
#define BIT(header) (1u << (header))
#define MESSAGE_SIZE 128
#define TOO_LARGE 413

static struct {
        struct source_choice choice;
        int64_t at_ms;
        int as_json;
        const char *headers_file;
        const char *body_file;
} args = {.at_ms = NOW};

/* A check is unknown if a header that it needs is missing or malformed. */
enum verification_outcome { VERIFICATION_OK, VERIFICATION_FAILED, VERIFICATION_UNKNOWN };

/* A receiver's verdict on a delivery. */
struct verification {
        const struct config_source *source;
        struct verification_check {
                enum verification_outcome outcome;
                struct delivery_refusal refusal; /* the receiver's, if it failed */
        } checks[DELIVERY_N_CHECKS];
        int status;       /* of the receiver's answer */
        const char *code; /* of its error; NULL: it accepts the delivery */
        int64_t age_s;    /* by the timestamp, if that is well formed */
        struct diagnosis diagnosis;
};

static const struct {
        const char *name;
        unsigned needs; /* bits of the headers without which it cannot be made */
        const char *success;
} checks[DELIVERY_N_CHECKS] = {
    [DELIVERY_CHECK_HEADERS] = {"headers", 0, "all four are there, once and well formed"},
    [DELIVERY_CHECK_WEBHOOK_ID] = {"webhook-id", BIT(DELIVERY_WEBHOOK_ID), "accepted by the source"},
    [DELIVERY_CHECK_TIMESTAMP] = {"timestamp", BIT(DELIVERY_TIMESTAMP), NULL},
    [DELIVERY_CHECK_SIGNATURE] = {"signature", BIT(DELIVERY_TIMESTAMP) | BIT(DELIVERY_SIGNATURE),
                                  "matches the body"},
};

static const char *const outcomes[] = {
    [VERIFICATION_OK] = "ok", [VERIFICATION_FAILED] = "failed", [VERIFICATION_UNKNOWN] = "unknown"};

/* Return bits of the headers that are missing or malformed. */
static unsigned
find_faulty(const struct delivery_subject *subject)
{
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;
        unsigned faulty = 0;

        if (delivery_parse(&subject->headers, &delivery, faults) == 0)
                return 0;
        for (unsigned h = 0; h < DELIVERY_N_HEADERS; h++)
                faulty |= (unsigned)(faults[h] != NULL) << h;
        return faulty;
}

/* Make all of the receiver's checks, also after one has failed. */
static void
make_checks(const struct delivery_subject *subject, struct verification *verification)
{
        struct delivery_policy policy = config_delivery_policy(verification->source);
        struct delivery delivery = {0};
        unsigned faulty = find_faulty(subject);

        verification->status = 200;
        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                struct verification_check *check = &verification->checks[c];

                if (checks[c].needs & faulty)
                        check->outcome = VERIFICATION_UNKNOWN;
                else if (delivery_check_make((enum delivery_check)c, &policy, subject, &delivery,
                                             &check->refusal) != 0)
                        check->outcome = VERIFICATION_FAILED;
                if (check->outcome == VERIFICATION_FAILED && verification->code == NULL) {
                        verification->status = check->refusal.status;
                        verification->code = check->refusal.code;
                }
        }
        verification->age_s = subject->now_ms / 1000 - delivery.timestamp;
}

/* Find out why the signature or the timestamp is wrong. */
static void
diagnose(const struct config *config, const struct delivery_subject *subject,
         struct verification *verification)
{
        struct diagnosis *diagnosis = &verification->diagnosis;
        int64_t age_s = verification->age_s;

        if (verification->checks[DELIVERY_CHECK_SIGNATURE].outcome == VERIFICATION_FAILED &&
            !diagnosis_find(config, verification->source, subject, diagnosis)) {
                diagnosis_add(diagnosis, "the sender has another secret, or the body was changed on its way");
                return; /* the timestamp may not be the sender's */
        }
        if (verification->checks[DELIVERY_CHECK_TIMESTAMP].outcome != VERIFICATION_FAILED)
                return;
        if (age_s < 0)
                diagnosis_add(diagnosis, "the sender's clock or this one is off by %" PRId64 " s", -age_s);
        else
                diagnosis_add(diagnosis,
                              "the delivery is %" PRId64
                              " s old, or a clock is off; --at verifies it as of another time",
                              age_s);
}

/* The headers of the source are missing: add a cause if they have another prefix. */
static void
diagnose_prefix(const struct capture *capture, const struct config_source *source,
                struct diagnosis *diagnosis)
{
        char *prefix = capture_find_prefix(capture);

        if (prefix != NULL)
                diagnosis_add(diagnosis,
                              "the headers begin with %.64s, but header_prefix of the source %s is %s",
                              prefix, source->name, source->header_prefix);
        free(prefix);
}

/* Return the result of a check as a clause. */
static const char *
describe(const struct verification *verification, int c, char text[MESSAGE_SIZE])
{
        const struct verification_check *check = &verification->checks[c];
        int64_t age_s = verification->age_s;
        char tolerance[NUMBER_TEXT_SIZE];

        if (check->outcome == VERIFICATION_UNKNOWN)
                return "not checked: a header is missing or malformed";
        if (c != DELIVERY_CHECK_TIMESTAMP)
                return check->outcome == VERIFICATION_OK ? checks[c].success : check->refusal.message;
        (void)snprintf(text, MESSAGE_SIZE, "%" PRId64 " s %s; the tolerance is %s",
                       age_s < 0 ? -age_s : age_s, age_s < 0 ? "in the future" : "ago",
                       number_format_duration(verification->source->tolerance_ms, tolerance));
        return text;
}

static void
print_text(const struct verification *verification)
{
        const struct diagnosis *diagnosis = &verification->diagnosis;
        char text[MESSAGE_SIZE];

        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                const struct verification_check *check = &verification->checks[c];

                printf("%-10s  %-7s  %s\n", checks[c].name, outcomes[check->outcome],
                       describe(verification, c, text));
                for (size_t v = 0; v < check->refusal.n_violations; v++)
                        printf("%-10s  %-7s  %s %s\n", "", "", check->refusal.violations[v].field,
                               check->refusal.violations[v].message);
        }
        if (verification->status == TOO_LARGE)
                printf("%-10s  %-7s  larger than max_body\n", "body", "failed");
        if (verification->code != NULL)
                printf("answer: %d %s\n", verification->status, verification->code);
        else
                printf("answer: 200, unless it cannot be stored\n");
        for (size_t i = 0; i < diagnosis->n_causes; i++)
                printf("cause: %s\n", diagnosis->causes[i]);
}

static void
put_check(struct json_writer *json, const struct verification *verification, int c)
{
        const struct verification_check *check = &verification->checks[c];
        char text[MESSAGE_SIZE];

        json_open_object(json, NULL);
        json_member(json, "check", checks[c].name);
        json_member(json, "outcome", outcomes[check->outcome]);
        json_member(json, "message", describe(verification, c, text));
        json_open_array(json, "violations");
        for (size_t v = 0; v < check->refusal.n_violations; v++) {
                json_open_object(json, NULL);
                json_member(json, "field", check->refusal.violations[v].field);
                json_member(json, "message", check->refusal.violations[v].message);
                json_close_object(json);
        }
        json_close_array(json);
        json_close_object(json);
}

static void
print_json(const struct verification *verification)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        json_flag(json, "ok", verification->code == NULL);
        json_member(json, "source", verification->source->name);
        json_number(json, "status", verification->status);
        json_member(json, "code", verification->code);
        json_open_array(json, "checks");
        for (int c = 0; c < DELIVERY_N_CHECKS; c++)
                put_check(json, verification, c);
        json_close_array(json);
        json_open_array(json, "causes");
        for (size_t i = 0; i < verification->diagnosis.n_causes; i++)
                json_member(json, NULL, verification->diagnosis.causes[i]);
        json_close_array(json);
        json_close_object(json);
        json_print(json);
}

/* Find the source by --source, else the first whose headers these are, else the first. */
static const struct config_source *
find_source(const struct config *config, const struct capture *capture, struct delivery_headers *headers)
{
        const struct config_source *source = NULL;

        for (size_t i = 0; i < config->n_sources && args.choice.name == NULL && source == NULL; i++) {
                if (capture_select(capture, config->sources[i].header_prefix, headers))
                        source = &config->sources[i];
        }
        if (source == NULL)
                source = source_choice_find(args.choice.name, config);
        return source;
}

static int
verify(const struct config *config, const struct capture *capture, struct delivery_subject *subject)
{
        struct verification verification = {.source = find_source(config, capture, &subject->headers)};

        if (verification.source == NULL)
                return EX_USAGE;
        if (!capture_select(capture, verification.source->header_prefix, &subject->headers))
                diagnose_prefix(capture, verification.source, &verification.diagnosis);
        make_checks(subject, &verification);
        diagnose(config, subject, &verification);
        /* A receiver answers that before it checks anything; --secret-file has no limit. */
        if (args.choice.secret_file == NULL && subject->len > config->max_body) {
                verification.status = TOO_LARGE;
                verification.code = "PAYLOAD_TOO_LARGE";
        }
        (args.as_json ? print_json : print_text)(&verification);
        return verification.code == NULL ? 0 : EX_DATAERR;
}

/* Read the two files and verify the delivery. Returns an exit status. */
static int
read_and_verify(const struct config *config)
{
        struct delivery_subject subject = {.now_ms = args.at_ms == NOW ? clock_now_ms() : args.at_ms};
        struct capture capture = {NULL, 0};
        struct error error;
        char *headers = arguments_headers(args.headers_file, &error);
        char *body = headers == NULL ? NULL : arguments_body(args.body_file, &subject.len, &error);
        int status;

        subject.body = body;
        if (body == NULL)
                status = command_fail(EX_NOINPUT, "%s", error.text);
        else if (capture_parse(headers, &capture, &error) != 0)
                status = command_fail(EX_DATAERR, "%s: %s", args.headers_file, error.text);
        else
                status = verify(config, &capture, &subject);
        free(capture.items);
        free(headers);
        free(body);
        return status;
}

static int
check(struct error *error)
{
        if (strcmp(args.headers_file, "-") == 0 && strcmp(args.body_file, "-") == 0)
                return error_set(error, "headers and body cannot both come from standard input");
        return source_choice_check(&args.choice, error);
}

static int
run(const char *file)
{
        return source_choice_run(&args.choice, file, read_and_verify);
}

static const struct command_option options[] = {
    {NULL, "HEADERS", "read the headers from this file: lines `Name: value`, or the output of curl -v",
     .text = &args.headers_file},
    {NULL, "BODY", "read the body from this file, or - for standard input", .text = &args.body_file},
    {"source", "NAME", "verify as this source (default: the first with this header_prefix)",
     .text = &args.choice.name},
    {"secret-file", "FILE", "use the secret in this file; needs no configuration",
     .text = &args.choice.secret_file},
    {"header-prefix", "PREFIX", "expect headers that begin with this, such as x-invoicing",
     .text = &args.choice.header_prefix},
    {"at", "TIME", "verify as of then: an age, such as 2h, or 2026-11-21T03:04:05Z (default: now)",
     .time_ms = &args.at_ms},
    {"json", NULL, "print JSON", .flag = &args.as_json},
};

const struct command verify_command = {
    .name = "verify",
    .help = "verify a saved delivery, and diagnose a wrong signature",
    .check = check,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
