/* What the sandbox reads of a request, as far as it does so without a server. The first byte says what the rest is. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "sandbox/endpoint_url.h"
#include "sandbox/event_filter.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/keys.h"
#include "sandbox/subscriptions.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What is refused is so with a reason for each field. */
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

        invoice_check(payload, &violations);
        if (violations.n == 0 && invoice_check_country_rules(payload, &error) != 0)
                MUST(error.text[0] != '\0');
        clear(&violations);
}

static void
read_subscription(const struct json_value *payload)
{
        struct violations violations = {0};
        struct subscription *subscription = subscription_new(payload, NULL, &violations);

        MUST((subscription == NULL) == (violations.n > 0));
        if (subscription != NULL) {
                struct error error;

                MUST(endpoint_url_check(subscription->url, &error) == 0 && subscription->n_events > 0);
                for (size_t i = 0; i < subscription->n_events; i++)
                        MUST(event_filter_is_known(subscription->events[i]));
                (void)subscription_wants(subscription, "default", "invoice.accepted");
        }
        subscription_free(subscription);
        clear(&violations);
}

/* What is written reads as the same again. */
static void
write_again(const struct json_value *payload)
{
        struct error error;
        size_t len, len_again;
        yajl_gen json = json_new(0);
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
        read_subscription(payload);
        write_again(payload);
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
        struct error error;
        char *text;

        if (len == 0)
                return 0;
        text = malloc(len);
        memcpy(text, data + 1, len - 1);
        text[len - 1] = '\0';
        if (data[0] % 4 == 1) {
                read_key(text);
        } else if (data[0] % 4 == 2) {
                (void)endpoint_url_check(text, &error);
        } else if (data[0] % 4 == 3) {
                (void)event_filter_suggest(text);
                (void)event_filter_matches(text, "invoice.accepted");
                MUST(!event_is_kind(text) || (strlen(text) >= 1 && strlen(text) <= 128));
        } else {
                char *exact = realloc(text, len > 1 ? len - 1 : 1);

                text = exact;
                read_payload(text, len - 1);
        }
        free(text);
        return 0;
}
