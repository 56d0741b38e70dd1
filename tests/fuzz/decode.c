/*
 * Bodies of deliveries. The first byte chooses the pointers. Decoding is repeatable, and a body that
 * json_tree parses as an object is not malformed.
 */
#include <string.h>

#include "base/json_tree.h"
#include "model/decode.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct event_rules
rules_for(unsigned choice)
{
        static const char *const kinds[] = {"/event", "/a/b", "/a/0/b~1c", "/"};
        static const char *const others[] = {NULL, "/invoiceId", "/a", "/a/b/c", "/0"};
        struct event_rules rules = {.source = "invoicing", .key_from = EVENT_KEY_POINTER};
        struct error error;

        MUST(pointer_parse(kinds[choice % 4], &rules.kind, &error) == 0);
        choice /= 4;
        if (others[choice % 5] != NULL)
                MUST(pointer_parse(others[choice % 5], &rules.key, &error) == 0);
        choice /= 5;
        if (others[choice % 5] != NULL)
                MUST(pointer_parse(others[choice % 5], &rules.subject, &error) == 0);
        return rules;
}

static void
check(const struct decoded *decoded, enum decode_result result)
{
        MUST((result == DECODE_OK) == (decoded->kind.data != NULL) || result == DECODE_INVALID_KIND);
        MUST(result == DECODE_OK || decoded->detail[0] != '\0');
        MUST(memchr(decoded->detail, '\0', sizeof(decoded->detail)) != NULL);
        MUST(memchr(decoded->field_fault, '\0', sizeof(decoded->field_fault)) != NULL);
        for (size_t i = 0; decoded->key.data != NULL && i < decoded->key.len; i++)
                (void)*(volatile const char *)&decoded->key.data[i];
        for (size_t i = 0; decoded->subject.data != NULL && i < decoded->subject.len; i++)
                (void)*(volatile const char *)&decoded->subject.data[i];
}

static void
compare_with_tree(const char *body, size_t len, enum decode_result result)
{
        struct error error;
        struct json_value *root = json_tree_parse(body, len, &error);

        if (root != NULL)
                MUST((result == DECODE_MALFORMED_JSON) == (root->type != JSON_OBJECT));
        json_tree_free(root);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        static struct decoder *decoder;
        struct decoded first, second;
        enum decode_result result, again;
        struct event_rules rules;
        char *body;

        if (len == 0)
                return 0;
        if (decoder == NULL)
                decoder = decoder_new();
        rules = rules_for(data[0]);
        body = malloc(len); /* exact size, at least 1, so that reads beyond it are detected */
        memcpy(body, data + 1, len - 1);
        MUST(decoder_run(decoder, &rules, (struct span){body, len - 1}, &first, &result) == 0);
        check(&first, result);
        MUST(decoder_run(decoder, &rules, (struct span){body, len - 1}, &second, &again) == 0);
        MUST(again == result && strcmp(first.detail, second.detail) == 0 &&
             strcmp(first.field_fault, second.field_fault) == 0);
        compare_with_tree(body, len - 1, result);
        free(body);
        pointer_clear(&rules.kind);
        pointer_clear(&rules.key);
        pointer_clear(&rules.subject);
        return 0;
}
