#include "cli/signing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/mem.h"

void
signing_choose_ids(struct signing *signing, const char *delivery_id, const char *webhook_id)
{
        const struct config_source *source = signing->source;
        char id[BYTES_UUID_SIZE];

        if (webhook_id == NULL && source->n_webhook_ids > 0)
                webhook_id = source->webhook_ids[0];
        (void)snprintf(signing->delivery_id, SIGNING_ID_SIZE, "%s",
                       delivery_id != NULL ? delivery_id : bytes_random_uuid(id));
        (void)snprintf(signing->webhook_id, SIGNING_ID_SIZE, "%s",
                       webhook_id != NULL ? webhook_id : bytes_random_uuid(id));
}

int
signing_sign(const struct signing *signing, const struct signature_key *key, int64_t timestamp,
             struct signing_values *values, struct error *error)
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
signing_clear_values(struct signing_values *values)
{
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                free(values->values[h]);
}
