#include "cli/sign.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/source_choice.h"

void
sign_choose_ids(struct sign_input *signing, const char *delivery_id, const char *webhook_id)
{
        const struct config_source *source = signing->source;
        char id[BYTES_UUID_SIZE];

        if (webhook_id == NULL && source->n_webhook_ids > 0)
                webhook_id = source->webhook_ids[0];
        (void)snprintf(signing->delivery_id, SIGN_ID_SIZE, "%s",
                       delivery_id != NULL ? delivery_id : bytes_random_uuid(id));
        (void)snprintf(signing->webhook_id, SIGN_ID_SIZE, "%s",
                       webhook_id != NULL ? webhook_id : bytes_random_uuid(id));
}

int
sign_delivery(const struct sign_input *signing, const struct signature_key *key, int64_t timestamp,
              struct sign_values *values, struct error *error)
{
        char when[24], text[SIGNATURE_HEADER_LEN + 1];
        uint8_t signature[SIGNATURE_SIZE];

        (void)snprintf(when, sizeof(when), "%010" PRId64, timestamp);
        if (signature_compute(key, when, signing->body, signing->len, signature) != 0)
                return error_set(error, "the signature could not be computed: out of memory");
        signature_format(signature, text);
        values->values[DELIVERY_SIGNATURE] = mem_strdup(text);
        values->values[DELIVERY_TIMESTAMP] = mem_strdup(when);
        values->values[DELIVERY_WEBHOOK_ID] = mem_strdup(signing->webhook_id);
        values->values[DELIVERY_ID] = mem_strdup(signing->delivery_id);
        return 0;
}

void
sign_clear_values(struct sign_values *values)
{
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                free(values->values[h]);
}

struct sign_arguments {
        struct source_choice choice;
        const char *timestamp; /* NULL: now */
        const char *delivery_id;
        const char *webhook_id;
        const char *body_file;
};

/* Print the four headers, if they are well formed. Returns an exit status. */
static int
print_headers(const struct command_context *context, const struct config_source *source,
              const struct sign_values *values)
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
sign(const struct command_context *context, const struct config *config, const struct sign_arguments *args)
{
        struct sign_input signing = {.source = source_choice_find(&args->choice, config, context)};
        uint64_t timestamp = (uint64_t)clock_now_ms() / 1000;
        struct sign_values values;
        struct error error;
        int status;

        if (signing.source == NULL)
                return EX_USAGE;
        if (args->timestamp != NULL && number_parse(args->timestamp, 0, 9999999999, &timestamp, &error) != 0)
                return command_misused(context, "--timestamp: %s; it counts seconds since 1970", error.text);
        signing.body = arguments_body(args->body_file, &signing.len, &error);
        if (signing.body == NULL) {
                fprintf(stderr, "gatepost sign: %s\n", error.text);
                return EX_NOINPUT;
        }
        sign_choose_ids(&signing, args->delivery_id, args->webhook_id);
        if (sign_delivery(&signing, signing.source->keys[0], (int64_t)timestamp, &values, &error) == 0) {
                status = print_headers(context, signing.source, &values);
                sign_clear_values(&values);
        } else {
                fprintf(stderr, "gatepost sign: %s\n", error.text);
                status = EX_SOFTWARE;
        }
        free(signing.body);
        return status;
}

/* Returns -1, or an exit status if there is nothing left to do. */
static int
parse(const struct command_context *context, int argc, char **argv, struct sign_arguments *args)
{
        static const struct option options[] = {{"source", required_argument, NULL, 's'},
                                                {"secret-file", required_argument, NULL, 'f'},
                                                {"header-prefix", required_argument, NULL, 'p'},
                                                {"timestamp", required_argument, NULL, 't'},
                                                {"delivery-id", required_argument, NULL, 'd'},
                                                {"webhook-id", required_argument, NULL, 'w'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        const char **texts[] = {['s'] = &args->choice.name,          ['f'] = &args->choice.secret_file,
                                ['p'] = &args->choice.header_prefix, ['t'] = &args->timestamp,
                                ['d'] = &args->delivery_id,          ['w'] = &args->webhook_id};
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
        args->body_file = argv[optind];
        return source_choice_check(&args->choice, context);
}

int
sign_run(const struct command_context *context, int argc, char **argv)
{
        struct sign_arguments args = {0};
        int status = parse(context, argc, argv, &args);
        struct config *config;

        if (status >= 0)
                return status;
        config = source_choice_load(&args.choice, context, &status);
        if (config == NULL)
                return status;
        status = sign(context, config, &args);
        config_free(config);
        return status;
}
