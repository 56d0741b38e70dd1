#include <getopt.h>
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

#define BIT(header) (1u << (header))

enum verification_outcome {
        VERIFICATION_OK,
        VERIFICATION_FAILED,
        VERIFICATION_UNKNOWN /* a header that the check needs is missing or malformed */
};

struct verification_check {
        enum verification_outcome outcome;
        struct delivery_refusal refusal; /* the receiver's, if it failed */
        char *message;
};

/* A receiver's verdict on a delivery. */
struct verification {
        const struct config_source *source;
        struct verification_check checks[DELIVERY_N_CHECKS];
        int status;       /* of the receiver's answer */
        const char *code; /* of its error; NULL: it accepts the delivery */
        int is_too_large; /* the body: the receiver answers that before it checks anything */
        int64_t age_ms;   /* by the timestamp, if that is well formed */
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

/* Return what a check found, as a clause; the caller frees it. */
static char *
describe(const struct verification *verification, enum delivery_check c)
{
        const struct verification_check *check = &verification->checks[c];
        int64_t s = verification->age_ms / 1000;
        char tolerance[NUMBER_TEXT_SIZE];

        if (check->outcome == VERIFICATION_UNKNOWN)
                return mem_strdup("not checked: a header is missing or malformed");
        if (c == DELIVERY_CHECK_TIMESTAMP)
                return mem_printf("%" PRId64 " s %s; the tolerance is %s", s < 0 ? -s : s,
                                  s < 0 ? "in the future" : "ago",
                                  number_format_duration(verification->source->tolerance_ms, tolerance));
        return mem_strdup(check->outcome == VERIFICATION_OK ? checks[c].success : check->refusal.message);
}

static void
diagnose(const struct config *config, const struct delivery_subject *subject,
         struct verification *verification)
{
        const struct diagnosis_subject failed = {
            .config = config,
            .source = verification->source,
            .signature = subject->headers.values[DELIVERY_SIGNATURE],
            .timestamp = subject->headers.values[DELIVERY_TIMESTAMP],
            .body = subject->body,
            .len = subject->len,
        };

        if (failed.signature != NULL && failed.timestamp != NULL)
                diagnosis_find(&failed, &verification->diagnosis);
}

/*
 * Return why the timestamp is stale; NULL if it is not, or nothing proves that it is the sender's. The
 * caller frees it.
 */
static char *
describe_clock(const struct verification *verification)
{
        int64_t s = verification->age_ms / 1000;

        if (verification->checks[DELIVERY_CHECK_TIMESTAMP].outcome != VERIFICATION_FAILED)
                return NULL;
        if (verification->checks[DELIVERY_CHECK_SIGNATURE].outcome != VERIFICATION_OK &&
            !verification->diagnosis.is_found)
                return NULL;
        if (s < 0)
                return mem_printf("the sender's clock or this one is off by %" PRId64 " s", -s);
        return mem_printf("the delivery is %" PRId64
                          " s old, or a clock is off; --at verifies it as of another time",
                          s);
}

/* Answer as the receiver does, by the first check that fails. */
static void
find_answer(struct verification *verification)
{
        verification->status = 200;
        if (verification->is_too_large) {
                verification->status = 413;
                verification->code = "PAYLOAD_TOO_LARGE";
                return;
        }
        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                if (verification->checks[c].outcome == VERIFICATION_FAILED) {
                        verification->status = verification->checks[c].refusal.status;
                        verification->code = verification->checks[c].refusal.code;
                        return;
                }
        }
}

/*
 * Make all of the receiver's checks, also after one has failed; diagnose a wrong signature. max_body 0: no
 * limit.
 */
static void
make_verification(const struct config *config, const struct config_source *source,
                  const struct delivery_subject *subject, uint64_t max_body,
                  struct verification *verification)
{
        struct delivery_policy policy = config_delivery_policy(source);
        struct delivery delivery = {0};
        unsigned faulty = find_faulty(subject);

        *verification = (struct verification){.source = source};
        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                struct verification_check *check = &verification->checks[c];

                if (checks[c].needs & faulty)
                        check->outcome = VERIFICATION_UNKNOWN;
                else if (delivery_check_make((enum delivery_check)c, &policy, subject, &delivery,
                                             &check->refusal) != 0)
                        check->outcome = VERIFICATION_FAILED;
        }
        verification->age_ms = subject->now_ms - delivery.timestamp * 1000;
        for (int c = 0; c < DELIVERY_N_CHECKS; c++)
                verification->checks[c].message = describe(verification, (enum delivery_check)c);
        if (verification->checks[DELIVERY_CHECK_SIGNATURE].outcome != VERIFICATION_OK)
                diagnose(config, subject, verification);
        diagnosis_add(&verification->diagnosis, describe_clock(verification));
        verification->is_too_large = max_body != 0 && subject->len > max_body;
        find_answer(verification);
}

static void
clear_verification(struct verification *verification)
{
        for (int c = 0; c < DELIVERY_N_CHECKS; c++)
                free(verification->checks[c].message);
        diagnosis_clear(&verification->diagnosis);
}

static void
print_text(const struct verification *verification)
{
        const struct diagnosis *diagnosis = &verification->diagnosis;

        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                const struct verification_check *check = &verification->checks[c];

                printf("%-10s  %-7s  %s\n", checks[c].name, outcomes[check->outcome], check->message);
                for (size_t v = 0; v < check->refusal.n_violations; v++)
                        printf("%-10s  %-7s  %s %s\n", "", "", check->refusal.violations[v].field,
                               check->refusal.violations[v].message);
        }
        if (verification->is_too_large)
                printf("%-10s  %-7s  larger than max_body\n", "body", "failed");
        if (verification->code != NULL)
                printf("answer: %d %s\n", verification->status, verification->code);
        else
                printf("answer: 200, unless it cannot be stored\n");
        for (size_t i = 0; i < diagnosis->n_causes; i++)
                printf("cause: %s\n", diagnosis->causes[i]);
        if (diagnosis->n_tried > 0 && !diagnosis->is_found)
                printf("cause: unknown; tried %zu combinations of body, timestamp and secret%s\n",
                       diagnosis->n_tried, diagnosis->gave_up ? ", not all, because the body is large" : "");
}

static void
put_check(struct json_writer *json, const struct verification_check *check, const char *name)
{
        json_open_object(json, NULL);
        json_member(json, "check", name);
        json_member(json, "outcome", outcomes[check->outcome]);
        json_member(json, "message", check->message);
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
                put_check(json, &verification->checks[c], checks[c].name);
        json_close_array(json);
        json_open_array(json, "causes");
        for (size_t i = 0; i < verification->diagnosis.n_causes; i++)
                json_member(json, NULL, verification->diagnosis.causes[i]);
        json_close_array(json);
        json_close_object(json);
        json_print(json);
}

struct verify_arguments {
        struct source_choice choice;
        int64_t at_ms;
        int as_json;
        const char *headers_file;
        const char *body_file;
};

/* Find the source by --source, else the first whose headers these are, else the first. */
static const struct config_source *
find_source(const struct command_context *context, const struct config *config,
            const struct verify_arguments *args, const struct capture *capture)
{
        struct delivery_headers headers;

        for (size_t i = 0; i < config->n_sources && args->choice.name == NULL; i++) {
                if (capture_select(capture, config->sources[i].header_prefix, &headers) > 0)
                        return &config->sources[i];
        }
        return source_choice_find(&args->choice, config, context);
}

/* Add a cause if the headers have another prefix than the source's. */
static void
diagnose_prefix(const struct capture *capture, const struct config_source *source,
                struct diagnosis *diagnosis)
{
        char *prefix = capture_find_prefix(capture);

        if (prefix != NULL)
                diagnosis_add(
                    diagnosis,
                    mem_printf("the headers begin with %s, but header_prefix of the source %s is %s", prefix,
                               source->name, source->header_prefix));
        free(prefix);
}

static int
verify(const struct command_context *context, const struct config *config,
       const struct verify_arguments *args, const struct capture *capture, struct delivery_subject *subject)
{
        const struct config_source *source = find_source(context, config, args, capture);
        struct verification verification;
        size_t n_requests;

        if (source == NULL)
                return EX_USAGE;
        n_requests = capture_select(capture, source->header_prefix, &subject->headers);
        if (n_requests > 1)
                fprintf(stderr,
                        "gatepost verify: %s has %zu requests with such headers; verifying the first\n",
                        args->headers_file, n_requests);
        make_verification(config, source, subject, args->choice.secret_file == NULL ? config->max_body : 0,
                          &verification);
        if (n_requests == 0)
                diagnose_prefix(capture, source, &verification.diagnosis);
        (args->as_json ? print_json : print_text)(&verification);
        clear_verification(&verification);
        return verification.code == NULL ? 0 : EX_DATAERR;
}

/* Read the two files and verify the delivery. Returns an exit status. */
static int
run(const struct command_context *context, const struct config *config, const struct verify_arguments *args)
{
        struct delivery_subject subject = {.now_ms = args->at_ms};
        struct capture capture = {NULL, 0};
        struct error error;
        size_t headers_len;
        char *headers = arguments_headers(args->headers_file, &headers_len, &error);
        char *body = headers == NULL ? NULL : arguments_body(args->body_file, &subject.len, &error);
        int status;

        if (body == NULL) {
                status = EX_NOINPUT;
                fprintf(stderr, "gatepost verify: %s\n", error.text);
        } else if (capture_parse(headers, headers_len, &capture, &error) != 0) {
                status = EX_DATAERR;
                fprintf(stderr, "gatepost verify: %s: %s\n", args->headers_file, error.text);
        } else {
                subject.body = body;
                status = verify(context, config, args, &capture, &subject);
        }
        capture_clear(&capture);
        free(headers);
        free(body);
        return status;
}

/* Returns -1, or an exit status if there is nothing left to do. */
static int
parse(const struct command_context *context, int argc, char **argv, struct verify_arguments *args)
{
        static const struct option options[] = {{"source", required_argument, NULL, 's'},
                                                {"secret-file", required_argument, NULL, 'f'},
                                                {"header-prefix", required_argument, NULL, 'p'},
                                                {"at", required_argument, NULL, 'a'},
                                                {"json", no_argument, NULL, 'j'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'a' && arguments_time(optarg, &args->at_ms, &error) != 0)
                        return command_misused(context, "--at: %s", error.text);
                args->as_json |= option == 'j';
                if (option == 's')
                        args->choice.name = optarg;
                if (option == 'f')
                        args->choice.secret_file = optarg;
                if (option == 'p')
                        args->choice.header_prefix = optarg;
        }
        if (argc - optind != 2)
                return command_misused(context, "needs a file with the headers, and one with the body");
        args->headers_file = argv[optind];
        args->body_file = argv[optind + 1];
        if (strcmp(args->headers_file, "-") == 0 && strcmp(args->body_file, "-") == 0)
                return command_misused(context, "headers and body cannot both come from standard input");
        return source_choice_check(&args->choice, context);
}

int
verify_run(const struct command_context *context, int argc, char **argv)
{
        struct verify_arguments args = {.at_ms = clock_now_ms()};
        int status = parse(context, argc, argv, &args);
        struct config *config;

        if (status >= 0)
                return status;
        config = source_choice_load(&args.choice, context, &status);
        if (config == NULL)
                return status;
        status = run(context, config, &args);
        config_free(config);
        return status;
}
