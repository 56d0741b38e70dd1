#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/uri.h"
#include "cli/arguments.h"
#include "cli/own_url.h"
#include "cli/receiver_url.h"
#include "cli/sign.h"
#include "cli/source_choice.h"
#include "config/config.h"
#include "model/sample.h"

#define ANSWER_MAX 65536

/* Of the answer; --json shows them. */
static const char *const headers_kept[] = {"content-type", "x-request-id", "retry-after"};

static struct {
        const char *to;
        const char *source;
        const char *kind;
        const char *body_file;
        const char *delivery_id;
        const char *webhook_id;
        uint64_t age_ms;
        uint64_t repeat;
        uint64_t timeout_ms;
        int forge;
        int as_json;
} args = {.repeat = 1, .timeout_ms = HTTP_CLIENT_TIMEOUT_MS};

struct send_job {
        struct sign_input signing;
        struct own_url to;
        int needs_proxy; /* the listener is behind a proxy that speaks the PROXY protocol */
};

/* Choose the URL: --to, by default with the source's path, or the first listener. */
static int
choose_url(const struct config *config, struct send_job *job)
{
        const char *path = job->signing.source->path;

        if (args.to != NULL) {
                job->to.url = receiver_url_make(args.to, path);
                return 0;
        }
        if (config->n_listen == 0 ||
            own_url_make(&config->listen[0], config->tls_certificate_file, path, &job->to) != 0)
                return command_fail(-1, "the configuration has no receiver to send to; give --to URL");
        job->needs_proxy = config->requires_proxy;
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
        if (signing->body == NULL)
                return command_fail(EX_NOINPUT, "%s", error.text);
        return 0;
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

/* Print the answer as a JSON object on one line; without an answer, the reason is in error. */
static void
print_json(const struct send_job *job, const struct http_client_answer *answer, const struct error *error)
{
        struct json_writer *json = json_new(0);
        char milliseconds[32];

        (void)snprintf(milliseconds, sizeof(milliseconds), "%.3f", (double)answer->took_us / 1000);
        json_open_object(json, NULL);
        if (error == NULL)
                json_number(json, "status", answer->status);
        else
                json_null(json, "status");
        json_bytes(json, "deliveryId", job->signing.delivery_id, strlen(job->signing.delivery_id));
        json_literal(json, "milliseconds", milliseconds);
        if (error != NULL) {
                json_bytes(json, "error", error->text, strlen(error->text));
        } else {
                json_open_object(json, "headers");
                for (size_t i = 0; i < ARRAY_LEN(headers_kept); i++) {
                        if (answer->kept[i] != NULL)
                                json_bytes(json, headers_kept[i], answer->kept[i], strlen(answer->kept[i]));
                }
                json_close_object(json);
                json_bytes(json, "body", answer->body, answer->len);
        }
        json_close_object(json);
        json_print(json);
}

static void
print_text(const struct http_client_answer *answer)
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

/* Call the receiver, and name the time limit if that was the reason. Returns 0, or -1 with the reason. */
static int
call(const struct http_client_request *request, struct http_client_answer *answer, struct error *error)
{
        int result = http_client_call(request, answer, error);

        if (result != 0 && answer->failure == HTTP_CLIENT_TIMED_OUT)
                (void)error_set(error, "no answer within %g s; --timeout allows more",
                                (double)request->timeout_ms / 1000);
        return result;
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
            .timeout_ms = (long)args.timeout_ms,
            .max_answer = ANSWER_MAX,
            .keeps = headers_kept,
            .n_keeps = ARRAY_LEN(headers_kept),
        };
        struct http_client_answer answer;
        struct error error;
        int result = call(&request, &answer, &error);

        if (result != 0 && job->needs_proxy && answer.is_connected)
                (void)error_prefix(&error,
                                   "the receiver requires the PROXY protocol, which this command does "
                                   "not speak; give --to with the URL of the proxy");
        if (args.as_json)
                print_json(job, &answer, result == 0 ? NULL : &error);
        else if (result == 0)
                print_text(&answer);
        if (result != 0)
                print_failure(request.url, &answer, &error);
        free(answer.body);
        for (size_t i = 0; i < ARRAY_LEN(headers_kept); i++)
                free(answer.kept[i]);
        return result == 0 ? status_for(answer.status) : EX_TEMPFAIL;
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
    {"json", NULL, "print JSON, one object per line", .flag = &args.as_json},
    {"timeout", "TIME", "wait this long for each answer (default: 10s)", .duration_ms = &args.timeout_ms,
     .min = 1, .max = 600000},
    {"repeat", "N", "send it N times, signed each time", .number = &args.repeat, .min = 1, .max = 1000000},
};

const struct command send_command = {
    .name = "send",
    .help = "sign a delivery and send it to a receiver",
    .check = check,
    .run = run,
    COMMAND_OPTIONS(options),
};
