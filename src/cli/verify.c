#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnosis.h"
#include "cli/source_choice.h"
#include "model/delivery_check.h"

/* Verifies a saved delivery, as a receiver does. */

#define NOW INT64_MAX
#define BLANKS " \t\r"

static struct {
        struct source_choice choice;
        int64_t at_ms;
        const char *headers_file;
        const char *body_file;
} args = {.at_ms = NOW};

static const char *const names[DELIVERY_N_CHECKS] = {
    [DELIVERY_CHECK_HEADERS] = "headers",
    [DELIVERY_CHECK_WEBHOOK_ID] = "webhook-id",
    [DELIVERY_CHECK_TIMESTAMP] = "timestamp",
    [DELIVERY_CHECK_SIGNATURE] = "signature",
};

/*
 * Find the headers with a prefix in lines `Name: value`, which curl -v begins with `> `. Other lines are
 * ignored. The values stay in the text, which is changed.
 */
static void
find_headers(char *text, const char *prefix, struct delivery_headers *headers)
{
        char *line;

        while ((line = strsep(&text, "\n")) != NULL) {
                char *value = strchr(line, ':'), *end = line + strlen(line);

                if (value == NULL)
                        continue;
                *value++ = '\0';
                value += strspn(value, BLANKS);
                while (end > value && strchr(BLANKS, end[-1]) != NULL)
                        *--end = '\0';
                delivery_headers_add(headers, prefix, strncmp(line, "> ", 2) == 0 ? line + 2 : line, value);
        }
}

/* Print why a check fails: each header that is wrong, or the reason that the receiver logs. */
static void
print_failure(enum delivery_check check, const struct delivery_refusal *refusal)
{
        const char *reason = check == DELIVERY_CHECK_SIGNATURE ? refusal->message : refusal->detail;

        for (size_t v = 0; v < refusal->n_violations; v++)
                printf("%-10s  failed  %s %s\n", names[check], refusal->violations[v].field,
                       refusal->violations[v].message);
        if (refusal->n_violations > 0)
                return;
        printf("%-10s  failed  ", names[check]);
        text_print(stdout, reason, strlen(reason));
        putchar('\n');
}

static void
print_cause(const struct config *config, const struct config_source *source, const struct delivery *delivery,
            const struct delivery_subject *subject)
{
        char *cause = diagnosis_find(config, source, delivery, subject->body, subject->len);

        printf("cause: %s\n",
               cause == NULL ? "the sender has another secret, or the body was changed on its way" : cause);
        free(cause);
}

/* Make the receiver's checks, and print each. Those after the first need sound headers. */
static int
verify(const struct config *config, const struct config_source *source,
       const struct delivery_subject *subject)
{
        struct delivery_policy policy = config_delivery_policy(source);
        struct delivery_refusal refusals[DELIVERY_N_CHECKS] = {{0}}, *first = NULL;
        struct delivery delivery = {0};

        for (unsigned c = 0; c < DELIVERY_N_CHECKS && refusals[DELIVERY_CHECK_HEADERS].code == NULL; c++) {
                enum delivery_check check = (enum delivery_check)c;

                if (delivery_check_make(check, &policy, subject, &delivery, &refusals[c]) == 0) {
                        printf("%-10s  ok\n", names[c]);
                        continue;
                }
                print_failure(check, &refusals[c]);
                if (first == NULL)
                        first = &refusals[c];
        }
        if (first == NULL)
                printf("answer: 200, unless it cannot be stored\n");
        else
                printf("answer: %d %s\n", first->status, first->code);
        if (refusals[DELIVERY_CHECK_SIGNATURE].code != NULL)
                print_cause(config, source, &delivery, subject);
        return first == NULL ? 0 : EX_DATAERR;
}

/* A receiver refuses a large body before it checks anything; --secret-file has no limit. */
static int
is_too_large(const struct config *config, size_t len)
{
        return args.choice.secret_file == NULL && len > config->max_body;
}

/* Read the two files and verify the delivery. Returns an exit status. */
static int
read_and_verify(const struct config *config)
{
        const struct config_source *source = source_choice_find(args.choice.name, config);
        struct delivery_subject subject = {.now_ms = args.at_ms == NOW ? clock_now_ms() : args.at_ms};
        struct error error;
        char *headers, *body;
        size_t headers_len;
        int status;

        if (source == NULL)
                return EX_USAGE;
        headers = arguments_read(args.headers_file, &headers_len, &error);
        body = headers == NULL ? NULL : arguments_read(args.body_file, &subject.len, &error);
        subject.body = body;
        if (body == NULL) {
                status = command_fail(EX_NOINPUT, "%s", error.text);
        } else if (strlen(headers) != headers_len) {
                status = command_fail(EX_NOINPUT, "%s contains a NUL byte", args.headers_file);
        } else if (is_too_large(config, subject.len)) {
                printf("answer: 413 PAYLOAD_TOO_LARGE\n");
                status = EX_DATAERR;
        } else {
                find_headers(headers, source->header_prefix, &subject.headers);
                status = verify(config, source, &subject);
        }
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
    {"source", "NAME", "verify as this source (default: the first)", .text = &args.choice.name},
    {"secret-file", "FILE", "use the secret in this file; needs no configuration",
     .text = &args.choice.secret_file},
    {"header-prefix", "PREFIX", "expect headers that begin with this, such as x-invoicing",
     .text = &args.choice.header_prefix},
    {"at", "TIME", "verify as of then: an age, such as 2h, or 2026-11-21T03:04:05Z (default: now)",
     .time_ms = &args.at_ms},
};

const struct command verify_command = {
    .name = "verify",
    .help = "verify a saved delivery, and diagnose a wrong signature",
    .check = check,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
