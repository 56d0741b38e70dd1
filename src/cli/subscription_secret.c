#include "cli/subscription_secret.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include <openssl/crypto.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/source_choice.h"
#include "config/secrets.h"

/* Whether some source would take what is signed with the secret. Also when that cannot be found out. */
static int
is_configured(const struct config *config, const char *secret, size_t len)
{
        struct signature_key *key = signature_key_new(secret, len);
        uint8_t signature[SIGNATURE_SIZE];
        int found = 0;

        if (key == NULL || signature_compute(key, "0", "", 0, signature) != 0)
                found = 1;
        for (size_t i = 0; i < config->n_sources && !found; i++)
                found = signature_verify(config->sources[i].keys, config->sources[i].n_keys, "0", "", 0,
                                         signature) != 0;
        signature_key_free(key);
        return found;
}

static char *
write_payload(const struct subscription_args *args, const char *secret, size_t secret_len, size_t *len)
{
        yajl_gen json = json_new(0);
        const unsigned char *text = NULL;
        char *payload;

        (void)yajl_gen_map_open(json);
        json_member(json, "url", args->url);
        json_text(json, "events");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < args->n_events; i++)
                json_text(json, args->events[i]);
        (void)yajl_gen_array_close(json);
        json_text(json, "secret");
        (void)yajl_gen_string(json, (const unsigned char *)secret, secret_len);
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_get_buf(json, &text, len);
        payload = mem_alloc(*len + 1);
        memcpy(payload, text, *len);
        OPENSSL_cleanse((void *)(uintptr_t)text, *len);
        yajl_gen_free(json);
        return payload;
}

char *
subscription_secret_payload(const struct subscription_args *args, const struct config *config, size_t *len,
                            int *status)
{
        struct error error;
        size_t secret_len;
        char *secret = secrets_read_signing(args->secret_file, &secret_len, &error), *payload = NULL;

        *status = 0;
        if (secret == NULL) {
                fprintf(stderr, "gatepost: %s\n", error.text);
                *status = source_choice_secret_status(args->secret_file);
                return NULL;
        }
        if (!text_is_utf8(args->url, strlen(args->url))) {
                fprintf(stderr, "gatepost: --url is not UTF-8\n");
                *status = EX_USAGE;
        } else if (!text_is_utf8(secret, secret_len)) {
                fprintf(stderr,
                        "gatepost: the secret in %s is not UTF-8, so JSON cannot carry it; make one: "
                        "gatepost secret new FILE\n",
                        args->secret_file);
                *status = EX_DATAERR;
        } else {
                if (!is_configured(config, secret, secret_len))
                        fprintf(stderr,
                                "gatepost: no [source] of %s has the secret in %s: gatepostd would refuse "
                                "what is "
                                "signed with it, until it has\n",
                                config->file, args->secret_file);
                payload = write_payload(args, secret, secret_len, len);
        }
        secrets_free(secret, secret_len);
        return payload;
}
