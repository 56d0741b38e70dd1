#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/body.h"
#include "cli/signing.h"
#include "cli/source_choice.h"

/* What the arguments ask for. */
struct wish {
        struct source_choice choice;
        const char *timestamp; /* NULL: now */
        const char *delivery_id;
        const char *webhook_id;
        const char *body_file;
};

/* Print the four lines, if a receiver would take them for well formed. Returns an exit status. */
static int
print_headers(const struct command_context *context, const struct config_source *source,
              const struct signing_values *values)
{
        struct delivery_headers headers = {0};
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;

        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                headers.values[h] = values->values[h];
                headers.counts[h] = 1;
        }
        if (delivery_parse(&headers, &delivery, faults) != 0) {
                for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                        if (faults[h] != NULL)
                                return command_misused(context, "--%s %s",
                                                       delivery_header_suffix((enum delivery_header)h),
                                                       faults[h]);
                }
        }
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                printf("%s-%s: %s\n", source->header_prefix, delivery_header_suffix((enum delivery_header)h),
                       values->values[h]);
        return 0;
}

static int
sign(const struct command_context *context, const struct config *config, const struct wish *wish)
{
        struct signing signing = {.source = source_choice_find(&wish->choice, config, context)};
        uint64_t timestamp = (uint64_t)clock_now_ms() / 1000;
        struct signing_values values;
        struct error error;
        int status;

        if (signing.source == NULL)
                return EX_USAGE;
        if (wish->timestamp != NULL && number_parse(wish->timestamp, 0, 9999999999, &timestamp, &error) != 0)
                return command_misused(context, "--timestamp: %s; it counts seconds since 1970", error.text);
        signing.body = body_read(wish->body_file, &signing.len, &error);
        if (signing.body == NULL) {
                fprintf(stderr, "gatepost sign: %s\n", error.text);
                return EX_NOINPUT;
        }
        signing_choose_ids(&signing, wish->delivery_id, wish->webhook_id);
        if (signing_sign(&signing, signing.source->keys[0], (int64_t)timestamp, &values, &error) == 0) {
                status = print_headers(context, signing.source, &values);
                signing_clear_values(&values);
        } else {
                fprintf(stderr, "gatepost sign: %s\n", error.text);
                status = EX_SOFTWARE;
        }
        free(signing.body);
        return status;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {{"source", required_argument, NULL, 's'},
                                                {"secret-file", required_argument, NULL, 'f'},
                                                {"header-prefix", required_argument, NULL, 'p'},
                                                {"timestamp", required_argument, NULL, 't'},
                                                {"delivery-id", required_argument, NULL, 'd'},
                                                {"webhook-id", required_argument, NULL, 'w'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        const char **texts[] = {['s'] = &wish->choice.name,          ['f'] = &wish->choice.secret_file,
                                ['p'] = &wish->choice.header_prefix, ['t'] = &wish->timestamp,
                                ['d'] = &wish->delivery_id,          ['w'] = &wish->webhook_id};
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                *texts[option] = optarg;
        }
        if (argc - optind != 1)
                return command_misused(context, "needs a file with the body, or - for standard input");
        wish->body_file = argv[optind];
        return source_choice_check(&wish->choice, context);
}

int
sign_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {0};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status >= 0)
                return status;
        config = source_choice_load(&wish.choice, context, &status);
        if (config == NULL)
                return status;
        status = sign(context, config, &wish);
        config_free(config);
        return status;
}
