#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/own_url.h"
#include "cli/sign.h"
#include "config/config.h"
#include "model/sample.h"

#define ANSWER_MAX 65536
#define TIMEOUT_MS 30000

struct send_arguments {
        const char *to;
        const char *source;
        const char *kind;
        const char *body_file;
        const char *delivery_id;
        const char *webhook_id;
        uint64_t age_ms;
        uint64_t repeat;
        int forge;
};

struct send_job {
        struct sign_input signing;
        struct own_url to;
};

/* Choose the URL: --to, by default with the source's path, or the first listener. */
static int
choose_url(const struct config *config, const struct send_arguments *args, struct send_job *job)
{
        const char *path = job->signing.source->path, *host;

        if (args->to != NULL) {
                host = strstr(args->to, "://");
                if (host != NULL && strncasecmp(args->to, "http://", 7) != 0 &&
                    strncasecmp(args->to, "https://", 8) != 0) {
                        fprintf(stderr, "gatepost send: --to: '%s' is not a URL with http:// or https://\n",
                                args->to);
                        return -1;
                }
                if (host == NULL)
                        job->to.url =
                            mem_printf("http://%s%s", args->to, strchr(args->to, '/') == NULL ? path : "");
                else
                        job->to.url = mem_printf("%s%s", args->to, strchr(host + 3, '/') == NULL ? path : "");
                return 0;
        }
        if (config->n_listen == 0 ||
            own_url_make(&config->listen[0], config->tls_certificate_file, path, &job->to) != 0) {
                fprintf(stderr,
                        "gatepost send: the configuration has no receiver to send to; give --to URL\n");
                return -1;
        }
        return 0;
}

static int
prepare(const struct config *config, const struct send_arguments *args, struct send_job *job)
{
        struct sign_input *signing = &job->signing;
        struct error error;

        signing->source = args->source == NULL
                              ? &config->sources[0]
                              : config_find_source(config, args->source, strlen(args->source));
        if (signing->source == NULL) {
                fprintf(stderr, "gatepost send: no source %s is configured\n", args->source);
                return EX_USAGE;
        }
        if (choose_url(config, args, job) != 0)
                return EX_USAGE;
        sign_choose_ids(signing, args->delivery_id, args->webhook_id);
        if (args->kind != NULL) {
                signing->body = sample_body(args->kind);
                signing->len = strlen(signing->body);
        } else {
                signing->body = arguments_body(args->body_file, &signing->len, &error);
        }
        if (signing->body == NULL)
                fprintf(stderr, "gatepost send: %s\n", error.text);
        return signing->body == NULL ? EX_NOINPUT : 0;
}

/* Sign with the source's first secret, or for --forge with a wrong one. */
static int
sign(const struct sign_input *signing, const struct send_arguments *args, struct sign_values *values,
     struct error *error)
{
        int64_t timestamp = (clock_now_ms() - (int64_t)args->age_ms) / 1000;
        struct signature_key *wrong;
        int result;

        if (!args->forge)
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
send_once(const struct send_job *job, const struct send_arguments *args)
{
        const struct sign_input *signing = &job->signing;
        char *headers[DELIVERY_N_HEADERS];
        struct sign_values values;
        struct error error;
        int status;

        if (sign(signing, args, &values, &error) != 0) {
                fprintf(stderr, "gatepost send: %s\n", error.text);
                return EX_SOFTWARE;
        }
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
send_all(const struct config *config, const struct send_arguments *args)
{
        struct send_job job = {0};
        int status = prepare(config, args, &job);

        for (uint64_t i = 0; i < args->repeat && (status == 0 || i > 0); i++) {
                int once = send_once(&job, args);

                status = once > status ? once : status;
        }
        free(job.to.url);
        free(job.signing.body);
        return status;
}

/* Returns -1, or an exit status if there is nothing left to do. */
static int
parse(const struct command_context *context, int argc, char **argv, struct send_arguments *args)
{
        static const struct option options[] = {{"to", required_argument, NULL, 't'},
                                                {"source", required_argument, NULL, 's'},
                                                {"kind", required_argument, NULL, 'k'},
                                                {"delivery-id", required_argument, NULL, 'd'},
                                                {"webhook-id", required_argument, NULL, 'w'},
                                                {"age", required_argument, NULL, 'a'},
                                                {"forge", no_argument, NULL, 'f'},
                                                {"repeat", required_argument, NULL, 'r'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        const char **texts[] = {['t'] = &args->to,
                                ['s'] = &args->source,
                                ['k'] = &args->kind,
                                ['d'] = &args->delivery_id,
                                ['w'] = &args->webhook_id};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'a' &&
                    number_parse_duration(optarg, 0, UINT64_C(31536000000), &args->age_ms, &error) != 0)
                        return command_misused(context, "--age: %s", error.text);
                if (option == 'r' && number_parse(optarg, 1, 1000000, &args->repeat, &error) != 0)
                        return command_misused(context, "--repeat: %s", error.text);
                if (option == 'f')
                        args->forge = 1;
                if ((size_t)option < ARRAY_LEN(texts) && texts[option] != NULL)
                        *texts[option] = optarg;
        }
        if (argc - optind > 1 || (argc - optind == 1) == (args->kind != NULL))
                return command_misused(context, "needs either --kind KIND or a file with the body");
        args->body_file = args->kind == NULL ? argv[optind] : NULL;
        return -1;
}

int
send_run(const struct command_context *context, int argc, char **argv)
{
        struct send_arguments args = {.repeat = 1};
        int status = parse(context, argc, argv, &args);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = send_all(config, &args);
        config_free(config);
        return status;
}
