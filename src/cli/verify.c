#include "cli/verify.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "cli/body.h"
#include "cli/capture.h"
#include "cli/since.h"
#include "cli/source_choice.h"
#include "cli/verification.h"
#include "config/each_secret.h"

/* What the arguments ask for. */
struct wish {
        struct source_choice choice;
        int64_t at_ms;
        int as_json;
        const char *headers_file;
        const char *body_file;
};

/* Secrets on their way from the files. */
struct gathering {
        struct guess_secrets *secrets;
        const char *source;
        void (*add)(struct guess_secrets *secrets, const char *secret, size_t len); /* NULL: other sources' */
};

static void
on_secret(const char *source, const char *secret, size_t len, void *arg)
{
        const struct gathering *gathering = arg;
        int is_own = strcmp(source, gathering->source) == 0;

        if (gathering->add != NULL && is_own)
                gathering->add(gathering->secrets, secret, len);
        else if (gathering->add == NULL && !is_own)
                guess_secrets_add_foreign(gathering->secrets, source, secret, len);
}

/* The secrets that may have been used, those of the source first. */
static void
gather_secrets(const struct command_context *context, const struct wish *wish, const char *source,
               struct guess_secrets *secrets)
{
        struct gathering steps[] = {{secrets, source, guess_secrets_add},
                                    {secrets, source, guess_secrets_add_variants},
                                    {secrets, source, NULL}};

        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
                if (wish->choice.secret_file != NULL)
                        each_secret_in(wish->choice.secret_file, source, on_secret, &steps[i]);
                else
                        each_secret(context->file, on_secret, &steps[i]);
        }
}

/* The source by name, or the first that one of the headers belongs to, or the first. */
static const struct config_source *
find_source(const struct command_context *context, const struct config *config, const struct wish *wish,
            const struct capture *capture)
{
        struct delivery_headers headers;

        for (size_t i = 0; i < config->n_sources && wish->choice.name == NULL; i++) {
                if (capture_count(capture, config->sources[i].header_prefix, &headers) > 0)
                        return &config->sources[i];
        }
        return source_choice_find(&wish->choice, config, context);
}

static int
judge(const struct command_context *context, const struct config *config, const struct wish *wish,
      const struct capture *capture, const char *body, size_t len)
{
        const struct config_source *source = find_source(context, config, wish, capture);
        struct delivery_subject subject = {.now_ms = wish->at_ms, .body = body, .len = len};
        struct guess_secrets secrets = {NULL, 0};
        struct verification verification;
        size_t n_requests;
        int is_ok;

        if (source == NULL)
                return EX_USAGE;
        n_requests = capture_count(capture, source->header_prefix, &subject.headers);
        if (n_requests > 1)
                fprintf(stderr,
                        "gatepost verify: %s has %zu requests with such headers; this is about the first\n",
                        wish->headers_file, n_requests);
        gather_secrets(context, wish, source->name, &secrets);
        verification_make(source, &subject, wish->choice.secret_file == NULL ? config->max_body : 0, &secrets,
                          &verification);
        (wish->as_json ? verification_print_json : verification_print)(&verification);
        is_ok = verification.code == NULL;
        verification_clear(&verification);
        guess_secrets_clear(&secrets);
        return is_ok ? 0 : EX_DATAERR;
}

/* Read the two files, and judge. Returns an exit status. */
static int
verify(const struct command_context *context, const struct config *config, const struct wish *wish)
{
        struct capture capture = {NULL, 0};
        size_t text_len, len;
        struct error error;
        char *text = body_read_capture(wish->headers_file, &text_len, &error), *body = NULL;
        int status = EX_NOINPUT;

        if (text != NULL)
                body = body_read(wish->body_file, &len, &error);
        if (body != NULL && capture_parse(text, text_len, &capture, &error) != 0) {
                (void)error_prefix(&error, "%s", wish->headers_file);
                status = EX_DATAERR;
        } else if (body != NULL) {
                status = -1;
        }
        if (status < 0)
                status = judge(context, config, wish, &capture, body, len);
        else
                fprintf(stderr, "gatepost verify: %s\n", error.text);
        capture_clear(&capture);
        free(text);
        free(body);
        return status;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
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
                if (option == 'a' && since_parse(optarg, &wish->at_ms, &error) != 0)
                        return command_misused(context, "--at: %s", error.text);
                wish->as_json |= option == 'j';
                if (option == 's')
                        wish->choice.name = optarg;
                if (option == 'f')
                        wish->choice.secret_file = optarg;
                if (option == 'p')
                        wish->choice.header_prefix = optarg;
        }
        if (argc - optind != 2)
                return command_misused(context, "needs a file with the headers, and one with the body");
        wish->headers_file = argv[optind];
        wish->body_file = argv[optind + 1];
        if (strcmp(wish->headers_file, "-") == 0 && strcmp(wish->body_file, "-") == 0)
                return command_misused(context, "headers and body cannot both come from standard input");
        return source_choice_check(&wish->choice, context);
}

int
verify_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {.at_ms = clock_now_ms()};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status >= 0)
                return status;
        config = source_choice_load(&wish.choice, context, &status);
        if (config == NULL)
                return status;
        status = verify(context, config, &wish);
        config_free(config);
        return status;
}
