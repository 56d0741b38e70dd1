#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/uri.h"
#include "cli/arguments.h"
#include "cli/receiver_url.h"
#include "cli/sign.h"
#include "cli/source_choice.h"
#include "config/config.h"
#include "model/sample.h"

static struct {
        const char *to;
        const char *source;
        const char *kind;
        const char *body_file;
        const char *delivery_id;
        const char *webhook_id;
        uint64_t age_ms;
        uint64_t repeat;
        int forge;
} args = {.repeat = 1};

struct send_job {
        struct sign_input signing;
        struct receiver_url to;
};

static int
prepare(const struct config *config, struct send_job *job)
{
        struct sign_input *signing = &job->signing;
        struct error error;

        signing->agent = "gatepost";
        signing->source = source_choice_find(args.source, config);
        if (signing->source == NULL)
                return EX_USAGE;
        if (receiver_url_choose(config, args.to, signing->source->path, &job->to, &error) != 0)
                return command_misused("%s", error.text);
        sign_choose_ids(signing, args.delivery_id, args.webhook_id);
        if (args.kind != NULL) {
                signing->body = sample_body(args.kind);
                signing->len = strlen(signing->body);
        } else {
                signing->body = arguments_read(args.body_file, &signing->len, &error);
        }
        if (signing->body == NULL)
                return command_fail(EX_NOINPUT, "%s", error.text);
        return 0;
}

/* Return the exit status for an answer. */
static int
status_for(int http_status)
{
        if (http_status >= 200 && http_status < 300)
                return 0;
        return http_status >= 400 && http_status < 500 ? EX_DATAERR : EX_TEMPFAIL;
}

static void
print_answer(const struct http_client_answer *answer)
{
        printf("%d ", answer->status);
        text_print(stdout, answer->body, strlen(answer->body));
        putchar('\n');
}

static void
print_failure(const char *url, const struct http_client_answer *answer, const struct error *error)
{
        char *shown = uri_hide_secrets(url);

        (void)command_fail(0, "%s: %s", shown, error->text);
        free(shown);
        if (answer->failure == HTTP_CLIENT_UNTRUSTED)
                command_advise("remedy: let this machine trust the authority of the certificate, or name its "
                               "file by SSL_CERT_FILE");
}

/* Sign and post once, and print the answer. Returns an exit status. */
static int
send_once(const struct send_job *job, const struct signature_key *key)
{
        int64_t timestamp = (clock_now_ms() - (int64_t)args.age_ms) / 1000;
        struct http_client_answer answer;
        struct error error;
        int status = EX_TEMPFAIL;

        if (sign_post(&job->signing, key, timestamp, &job->to, &answer, &error) == 0) {
                print_answer(&answer);
                status = status_for(answer.status);
        } else {
                print_failure(job->to.url, &answer, &error);
        }
        free(answer.body);
        return status;
}

/* Send with the source's first secret, or for --forge with a wrong one. Returns the highest exit status. */
static int
send_all(const struct send_job *job)
{
        struct signature_key *wrong =
            args.forge ? signature_key_new("not the secret that was agreed", 30) : NULL;
        int status = 0;

        if (args.forge && wrong == NULL)
                return command_fail(EX_OSERR, "out of memory");
        for (uint64_t i = 0; i < args.repeat; i++) {
                int once = send_once(job, args.forge ? wrong : job->signing.source->keys[0]);

                status = once > status ? once : status;
        }
        signature_key_free(wrong);
        return status;
}

static int
run(const struct config *config)
{
        struct send_job job = {0};
        int status = prepare(config, &job);

        if (status == 0)
                status = send_all(&job);
        free(job.to.url);
        free(job.signing.body);
        return status;
}

static int
check(struct error *error)
{
        if (args.to != NULL && receiver_url_check(args.to, error) != 0)
                return error_prefix(error, "--to");
        return (args.kind == NULL) == (args.body_file == NULL)
                   ? error_set(error, "needs either --kind KIND or a file with the body")
                   : 0;
}

static const struct command_option options[] = {
    {NULL, "[BODY]", "send this file, or - for standard input; needed without --kind",
     .text = &args.body_file},
    {"kind", "KIND", "send a sample body of this kind", .text = &args.kind},
    {"to", "URL", "send to this receiver (default: the first `listen` and the source's path)",
     .text = &args.to},
    {"source", "NAME", "use the secret, header_prefix and path of this source (default: the first)",
     .text = &args.source},
    {"delivery-id", "ID", "use this ID (default: a random one)", .text = &args.delivery_id},
    {"webhook-id", "ID", "use this ID (default: the source's first, or a random one)",
     .text = &args.webhook_id},
    {"age", "TIME", "sign with a timestamp of this age, such as 1h", .duration_ms = &args.age_ms,
     .max = UINT64_C(31536000000)},
    {"forge", NULL, "sign with a wrong secret", .flag = &args.forge},
    {"repeat", "N", "send it N times, signed each time", .number = &args.repeat, .min = 1, .max = 1000000},
};

const struct command send_command = {
    .name = "send",
    .help = "sign a delivery and send it to a receiver",
    .check = check,
    .run = run,
    COMMAND_OPTIONS(options),
};
