/* The sandbox's parsers of request contents, without a server. The first byte selects the parser. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/keys.h"
#include "sandbox/webhooks.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Every violation has a field and a message. */
static void
clear(struct violations *violations)
{
        for (size_t i = 0; i < violations->n; i++)
                MUST(violations->items[i].field[0] != '\0' && violations->items[i].message[0] != '\0');
        MUST(violations->n <= VIOLATIONS_MAX);
        violations_clear(violations);
}

static void
read_invoice(const struct json_value *payload)
{
        struct violations violations = {0};
        struct error error;

        invoice_rules_check(payload, &violations);
        if (violations.n == 0 && invoice_rules_check_country(payload, &error) != 0)
                MUST(error.text[0] != '\0');
        clear(&violations);
}

static void
read_webhook(const struct json_value *payload)
{
        struct violations violations = {0};

        webhooks_check(payload, &violations);
        if (violations.n == 0) {
                struct webhook *webhook = webhooks_new(payload, NULL);

                MUST(webhook->n_events > 0);
                (void)webhooks_wants(webhook, "default", "invoice.accepted");
                webhooks_free(webhook);
        }
        clear(&violations);
}

/* Written JSON parses to the same text again. */
static void
round_trip(const struct json_value *payload)
{
        struct error error;
        size_t len, len_again;
        struct json_writer *json = json_new(0);
        char *text, *again;
        struct json_value *root;

        json_tree_write(json, payload);
        text = json_take(json, &len);
        root = json_tree_parse(text, len, &error);
        MUST(root != NULL);
        json = json_new(0);
        json_tree_write(json, root);
        again = json_take(json, &len_again);
        MUST(len == len_again && memcmp(text, again, len) == 0);
        json_tree_free(root);
        free(text);
        free(again);
}

static void
read_payload(const char *text, size_t len)
{
        struct error error;
        struct json_value *payload = json_tree_parse(text, len, &error);

        if (payload == NULL)
                return;
        read_invoice(payload);
        read_webhook(payload);
        round_trip(payload);
        json_tree_free(payload);
}

static void
read_key(const char *text)
{
        struct api_keys keys = {0};
        struct error error;

        if (keys_add(&keys, text, &error) == 0)
                (void)keys_find(&keys, text);
        keys_clear(&keys);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        char *text;

        if (len == 0)
                return 0;
        text = malloc(len);
        memcpy(text, data + 1, len - 1);
        text[len - 1] = '\0';
        if (data[0] % 4 == 1) {
                read_key(text);
        } else {
                /* Without the final NUL, so that reading beyond the end is noticed. */
                text = realloc(text, len > 1 ? len - 1 : 1);
                read_payload(text, len - 1);
        }
        free(text);
        return 0;
}
