#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/body.h"
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/since.h"
#include "cli/source_choice.h"
#include "cli/verification.h"

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
       const struct verify_arguments *args, const struct capture *capture, struct screen_subject *subject)
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
        verification_make(config, source, subject, args->choice.secret_file == NULL ? config->max_body : 0,
                          &verification);
        if (n_requests == 0)
                diagnose_prefix(capture, source, &verification.diagnosis);
        (args->as_json ? verification_print_json : verification_print)(&verification);
        verification_clear(&verification);
        return verification.code == NULL ? 0 : EX_DATAERR;
}

/* Read the two files and verify the delivery. Returns an exit status. */
static int
run(const struct command_context *context, const struct config *config, const struct verify_arguments *args)
{
        struct screen_subject subject = {.now_ms = args->at_ms};
        struct capture capture = {NULL, 0};
        struct error error;
        size_t headers_len;
        char *headers = body_read_capture(args->headers_file, &headers_len, &error);
        char *body = headers == NULL ? NULL : body_read(args->body_file, &subject.len, &error);
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
                if (option == 'a' && since_parse(optarg, &args->at_ms, &error) != 0)
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
