#include "cli/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/source_choice.h"

#define NOW UINT64_MAX

#define ANSWER_MAX 65536 /* bytes of an answer that are read */

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
              char *lines[DELIVERY_N_HEADERS], struct error *error)
{
        char when[24], text[SIGNATURE_HEADER_LEN + 1];
        const char *const values[] = {[DELIVERY_SIGNATURE] = text,
                                      [DELIVERY_TIMESTAMP] = when,
                                      [DELIVERY_WEBHOOK_ID] = signing->webhook_id,
                                      [DELIVERY_ID] = signing->delivery_id};
        uint8_t signature[SIGNATURE_SIZE];

        (void)snprintf(when, sizeof(when), "%010" PRId64, timestamp);
        if (signature_compute(key, when, signing->body, signing->len, signature) != 0)
                return error_set(error, "the signature could not be computed: out of memory");
        signature_format(signature, text);
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                lines[h] = mem_printf("%s-%s: %s", signing->source->header_prefix,
                                      delivery_header_suffix((enum delivery_header)h), values[h]);
        return 0;
}

void
sign_free_lines(char *lines[DELIVERY_N_HEADERS])
{
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                free(lines[h]);
}

int
sign_post(const struct sign_input *signing, const struct signature_key *key, int64_t timestamp,
          const struct receiver_url *to, struct http_client_answer *answer, struct error *error)
{
        char *lines[DELIVERY_N_HEADERS + 1];
        const struct http_client_request request = {.method = "POST",
                                                    .url = to->url,
                                                    .socket_path = to->socket_path,
                                                    .ca_file = to->ca_file,
                                                    .allows_any_name = to->ca_file != NULL,
                                                    .headers = (const char *const *)lines,
                                                    .n_headers = ARRAY_LEN(lines),
                                                    .body = signing->body,
                                                    .len = signing->len,
                                                    .timeout_ms = SIGN_POST_TIMEOUT_MS,
                                                    .max_answer = ANSWER_MAX};
        int result;

        *answer = (struct http_client_answer){0};
        if (sign_delivery(signing, key, timestamp, lines, error) != 0)
                return -1;
        lines[DELIVERY_N_HEADERS] = mem_printf("User-Agent: %s", signing->agent);
        result = http_client_call(&request, answer, error);
        free(lines[DELIVERY_N_HEADERS]);
        sign_free_lines(lines);
        return result;
}

static struct {
        struct source_choice choice;
        uint64_t timestamp;
        const char *delivery_id;
        const char *webhook_id;
        const char *body_file;
} args = {.timestamp = NOW};

/* Sign with the source's first secret, and print. */
static int
sign(const struct config *config)
{
        struct sign_input signing = {.source = source_choice_find(args.choice.name, config)};
        int64_t timestamp = args.timestamp == NOW ? clock_now_ms() / 1000 : (int64_t)args.timestamp;
        char *lines[DELIVERY_N_HEADERS];
        struct error error;
        int status = 0;

        if (signing.source == NULL)
                return EX_USAGE;
        signing.body = arguments_read(args.body_file, &signing.len, &error);
        if (signing.body == NULL)
                return command_fail(EX_NOINPUT, "%s", error.text);
        sign_choose_ids(&signing, args.delivery_id, args.webhook_id);
        if (sign_delivery(&signing, signing.source->keys[0], timestamp, lines, &error) == 0) {
                for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                        puts(lines[h]);
                sign_free_lines(lines);
        } else {
                status = command_fail(EX_SOFTWARE, "%s", error.text);
        }
        free(signing.body);
        return status;
}

static int
check(struct error *error)
{
        return source_choice_check(&args.choice, error);
}

static int
run(const char *file)
{
        return source_choice_run(&args.choice, file, sign);
}

static const struct command_option options[] = {
    {NULL, "BODY", "sign this file, or - for standard input", .text = &args.body_file},
    {"source", "NAME", "use the secret and the header_prefix of this source (default: the first)",
     .text = &args.choice.name},
    {"secret-file", "FILE", "use the secret in this file; needs no configuration",
     .text = &args.choice.secret_file},
    {"header-prefix", "PREFIX", "begin the headers with this, such as x-invoicing",
     .text = &args.choice.header_prefix},
    {"timestamp", "T", "sign this time, in seconds since 1970 (default: now)", .number = &args.timestamp,
     .max = 9999999999},
    {"delivery-id", "ID", "use this ID (default: a random one)", .text = &args.delivery_id},
    {"webhook-id", "ID", "use this ID (default: the source's first, or a random one)",
     .text = &args.webhook_id},
};

const struct command sign_command = {
    .name = "sign",
    .help = "print the headers of a signed delivery",
    .check = check,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
