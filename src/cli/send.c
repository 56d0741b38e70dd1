#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/own_url.h"
#include "cli/sign.h"
#include "cli/source_choice.h"
#include "config/config.h"
#include "model/sample.h"

#define ANSWER_MAX 65536
#define TIMEOUT_MS 30000

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
        struct own_url to;
};

/* Choose the URL: --to, by default with the source's path, or the first listener. */
static int
choose_url(const struct config *config, struct send_job *job)
{
        const char *path = job->signing.source->path, *host;

        if (args.to != NULL) {
                host = strstr(args.to, "://");
                if (host != NULL && strncasecmp(args.to, "http://", 7) != 0 &&
                    strncasecmp(args.to, "https://", 8) != 0)
                        return command_fail(-1, "--to: '%s' is not a URL with http:// or https://", args.to);
                if (host == NULL)
                        job->to.url =
                            mem_printf("http://%s%s", args.to, strchr(args.to, '/') == NULL ? path : "");
                else
                        job->to.url = mem_printf("%s%s", args.to, strchr(host + 3, '/') == NULL ? path : "");
                return 0;
        }
        if (config->n_listen == 0 ||
            own_url_make(&config->listen[0], config->tls_certificate_file, path, &job->to) != 0)
                return command_fail(-1, "the configuration has no receiver to send to; give --to URL");
        return 0;
}

static int
prepare(const struct config *config, struct send_job *job)
{
        struct sign_input *signing = &job->signing;
        struct error error;

        signing->source = source_choice_find(args.source, config);
        if (signing->source == NULL || choose_url(config, job) != 0)
                return EX_USAGE;
        sign_choose_ids(signing, args.delivery_id, args.webhook_id);
        if (args.kind != NULL) {
                signing->body = sample_body(args.kind);
                signing->len = strlen(signing->body);
        } else {
                signing->body = arguments_body(args.body_file, &signing->len, &error);
        }
        return signing->body == NULL ? command_fail(EX_NOINPUT, "%s", error.text) : 0;
}

/* Sign with the source's first secret, or for --forge with a wrong one. */
static int
sign(const struct sign_input *signing, struct sign_values *values, struct error *error)
{
        int64_t timestamp = (clock_now_ms() - (int64_t)args.age_ms) / 1000;
        struct signature_key *wrong;
        int result;

        if (!args.forge)
                return sign_delivery(signing, signing->source->keys[0], timestamp, values, error);
        wrong = signature_key_new("not the secret that was agreed", 30);
        result = wrong == NULL ? error_set(error, "out of memory")
                               : sign_delivery(signing, wrong, timestamp, values, error);
        signature_key_free(wrong);
        return result;
}

/* Return the exit status for an answer; the highest of several counts. */
static int
status_for(int http_status)
{
        if (http_status >= 200 && http_status < 300)
                return 0;
        return http_status >= 400 && http_status < 500 ? EX_DATAERR : EX_TEMPFAIL;
}

/* Post the delivery and print the answer. Returns an exit status. */
static int
post(const struct send_job *job, const char *const headers[DELIVERY_N_HEADERS])
{
        const struct http_client_request request = {
            .method = "POST",
            .url = job->to.url,
            .socket_path = job->to.socket_path,
            .ca_file = job->to.ca_file,
            .allows_any_name = job->to.ca_file != NULL,
            .headers = headers,
            .n_headers = DELIVERY_N_HEADERS,
            .body = job->signing.body,
            .len = job->signing.len,
            .timeout_ms = TIMEOUT_MS,
            .max_answer = ANSWER_MAX,
        };
        struct http_client_answer answer;
        struct error error;

        if (http_client_call(&request, &answer, &error) != 0) {
                fputs("gatepost send: ", stderr);
                text_print(stderr, request.url, strlen(request.url));
                fputs(": ", stderr);
                text_print(stderr, error.text, strlen(error.text)); /* it may quote a certificate */
                fputc('\n', stderr);
                return EX_TEMPFAIL;
        }
        printf("%d ", answer.status);
        text_print(stdout, answer.body, strlen(answer.body));
        putchar('\n');
        free(answer.body);
        return status_for(answer.status);
}

/* Sign and post once. Returns an exit status. */
static int
send_once(const struct send_job *job)
{
        const struct sign_input *signing = &job->signing;
        char *headers[DELIVERY_N_HEADERS];
        struct sign_values values;
        struct error error;
        int status;

        if (sign(signing, &values, &error) != 0)
                return command_fail(EX_SOFTWARE, "%s", error.text);
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                headers[h] = mem_printf("%s-%s: %s", signing->source->header_prefix,
                                        delivery_header_suffix((enum delivery_header)h), values.values[h]);
        status = post(job, (const char *const *)headers);
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                free(headers[h]);
        sign_clear_values(&values);
        return status;
}

static int
run(const struct config *config)
{
        struct send_job job = {0};
        int status = prepare(config, &job);

        for (uint64_t i = 0; i < args.repeat && (status == 0 || i > 0); i++) {
                int once = send_once(&job);

                status = once > status ? once : status;
        }
        free(job.to.url);
        free(job.signing.body);
        return status;
}

static int
check(struct error *error)
{
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
