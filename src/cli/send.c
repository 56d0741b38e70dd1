#include "cli/send.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/body.h"
#include "cli/own_url.h"
#include "cli/post.h"
#include "cli/signing.h"
#include "config/config.h"
#include "model/sample.h"

/* What the arguments ask for. */
struct wish {
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

/* What is sent, and where to. */
struct mission {
        struct signing signing;
        struct own_url to;
};

/* --to may leave out the path: then it is the source's. */
static int
choose_url(const struct config *config, const struct wish *wish, struct mission *mission)
{
        const char *path = mission->signing.source->path, *host;

        if (wish->to != NULL) {
                host = strstr(wish->to, "://");
                if (host != NULL && strncasecmp(wish->to, "http://", 7) != 0 &&
                    strncasecmp(wish->to, "https://", 8) != 0) {
                        fprintf(stderr, "gatepost send: --to: '%s' is no URL with http:// or https://\n",
                                wish->to);
                        return -1;
                }
                if (host == NULL)
                        mission->to.url =
                            mem_printf("http://%s%s", wish->to, strchr(wish->to, '/') == NULL ? path : "");
                else
                        mission->to.url =
                            mem_printf("%s%s", wish->to, strchr(host + 3, '/') == NULL ? path : "");
                return 0;
        }
        if (config->n_listen == 0 ||
            own_url_make(&config->listen[0], config->tls_certificate_file, path, &mission->to) != 0) {
                fprintf(stderr, "gatepost send: the configuration does not say where to: give --to URL\n");
                return -1;
        }
        return 0;
}

static int
prepare(const struct config *config, const struct wish *wish, struct mission *mission)
{
        struct signing *signing = &mission->signing;
        struct error error;

        signing->source = wish->source == NULL
                              ? &config->sources[0]
                              : config_find_source(config, wish->source, strlen(wish->source));
        if (signing->source == NULL) {
                fprintf(stderr, "gatepost send: no source %s is configured\n", wish->source);
                return EX_USAGE;
        }
        if (choose_url(config, wish, mission) != 0)
                return EX_USAGE;
        signing_choose_ids(signing, wish->delivery_id, wish->webhook_id);
        if (wish->kind != NULL) {
                signing->body = sample_body(wish->kind);
                signing->len = strlen(signing->body);
        } else {
                signing->body = body_read(wish->body_file, &signing->len, &error);
        }
        if (signing->body == NULL)
                fprintf(stderr, "gatepost send: %s\n", error.text);
        return signing->body == NULL ? EX_NOINPUT : 0;
}

/* Sign by the source's first secret, or by another one. */
static int
sign(const struct signing *signing, const struct wish *wish, struct signing_values *values,
     struct error *error)
{
        int64_t timestamp = (clock_now_ms() - (int64_t)wish->age_ms) / 1000;
        struct signature_key *wrong;
        int result;

        if (!wish->forge)
                return signing_sign(signing, signing->source->keys[0], timestamp, values, error);
        wrong = signature_key_new("not the secret that was agreed", 30);
        result = wrong == NULL ? error_set(error, "out of memory")
                               : signing_sign(signing, wrong, timestamp, values, error);
        signature_key_free(wrong);
        return result;
}

/* What an answer means for the exit status: the worst of several counts. */
static int
status_for(int http_status)
{
        if (http_status >= 200 && http_status < 300)
                return 0;
        return http_status >= 400 && http_status < 500 ? EX_DATAERR : EX_TEMPFAIL;
}

/* Sign and post once. Returns an exit status. */
static int
send_once(const struct mission *mission, const struct wish *wish)
{
        const struct signing *signing = &mission->signing;
        char *headers[DELIVERY_N_HEADERS];
        struct signing_values values;
        struct transfer_answer answer;
        struct error error;
        int status;

        if (sign(signing, wish, &values, &error) != 0) {
                fprintf(stderr, "gatepost send: %s\n", error.text);
                return EX_SOFTWARE;
        }
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                headers[h] = mem_printf("%s-%s: %s", signing->source->header_prefix,
                                        delivery_header_suffix((enum delivery_header)h), values.values[h]);
        if (post_send(&mission->to, (const char *const *)headers, DELIVERY_N_HEADERS, signing->body,
                      signing->len, &answer, &error) != 0) {
                fprintf(stderr, "gatepost send: ");
                text_print(stderr, error.text, strlen(error.text)); /* it may quote a certificate */
                fputc('\n', stderr);
                status = EX_TEMPFAIL;
        } else {
                printf("%d ", answer.status);
                text_print(stdout, answer.body, strlen(answer.body));
                putchar('\n');
                free(answer.body);
                status = status_for(answer.status);
        }
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                free(headers[h]);
        signing_clear_values(&values);
        return status;
}

static int
send_all(const struct config *config, const struct wish *wish)
{
        struct mission mission = {0};
        int status = prepare(config, wish, &mission);

        for (uint64_t i = 0; i < wish->repeat && (status == 0 || i > 0); i++) {
                int once = send_once(&mission, wish);

                status = once > status ? once : status;
        }
        free(mission.to.url);
        free(mission.signing.body);
        return status;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
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
        const char **texts[] = {['t'] = &wish->to,
                                ['s'] = &wish->source,
                                ['k'] = &wish->kind,
                                ['d'] = &wish->delivery_id,
                                ['w'] = &wish->webhook_id};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'a' &&
                    number_parse_duration(optarg, 0, UINT64_C(31536000000), &wish->age_ms, &error) != 0)
                        return command_misused(context, "--age: %s", error.text);
                if (option == 'r' && number_parse(optarg, 1, 1000000, &wish->repeat, &error) != 0)
                        return command_misused(context, "--repeat: %s", error.text);
                if (option == 'f')
                        wish->forge = 1;
                if ((size_t)option < ARRAY_LEN(texts) && texts[option] != NULL)
                        *texts[option] = optarg;
        }
        if (argc - optind > 1 || (argc - optind == 1) == (wish->kind != NULL))
                return command_misused(context, "needs either --kind KIND or a file with the body");
        wish->body_file = wish->kind == NULL ? argv[optind] : NULL;
        return -1;
}

int
send_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {.repeat = 1};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = send_all(config, &wish);
        config_free(config);
        return status;
}
