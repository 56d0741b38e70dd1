/* Screening of delivery headers, given as `name: value` lines: it accepts no malformed headers. */
#include <stdio.h>
#include <string.h>

#include "model/delivery_check.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define PREFIX "x-invoicing"
#define NOW_MS INT64_C(1790000000000)

static struct delivery_policy policy = {.header_prefix = PREFIX, .tolerance_ms = 300000};

static void
check_id(const char *id)
{
        size_t len = strlen(id);

        MUST(len >= 1 && len <= DELIVERY_ID_MAX);
        MUST(strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == len);
}

static void
check_delivery(const struct delivery *delivery)
{
        char text[SIGNATURE_HEADER_LEN + 1];

        check_id(delivery->delivery_id);
        check_id(delivery->webhook_id);
        signature_format(delivery->signature, text);
        MUST(strcmp(text, delivery->signature_text) == 0);
        (void)snprintf(text, sizeof(text), "%010lld", (long long)delivery->timestamp);
        MUST(strcmp(text, delivery->timestamp_text) == 0);
}

/* Every refusal has a status, a code and a message, and names the headers at fault. */
static void
check_refusal(const struct delivery_refusal *refusal)
{
        MUST(refusal->status >= 400 && refusal->code != NULL && refusal->message != NULL);
        MUST(refusal->n_violations <= DELIVERY_N_HEADERS);
        for (size_t i = 0; i < refusal->n_violations; i++)
                MUST(strncmp(refusal->violations[i].field, PREFIX "-", strlen(PREFIX) + 1) == 0);
}

static void
screen(struct delivery_subject *subject)
{
        struct delivery delivery;
        struct delivery_refusal refusal;

        for (int check = 0; check < DELIVERY_N_CHECKS; check++) {
                if (delivery_check_make((enum delivery_check)check, &policy, subject, &delivery, &refusal) !=
                    0) {
                        check_refusal(&refusal);
                        return;
                }
                if (check == DELIVERY_CHECK_HEADERS)
                        check_delivery(&delivery);
                if (check == DELIVERY_CHECK_TIMESTAMP)
                        MUST(delivery.timestamp >= NOW_MS / 1000 - 300 &&
                             delivery.timestamp <= NOW_MS / 1000 + 300);
        }
        abort(); /* a fuzzer cannot make a genuine signature */
}

static void
take_line(struct delivery_subject *subject, char *line)
{
        char *value = strchr(line, ':');

        if (value == NULL)
                return;
        *value++ = '\0';
        delivery_headers_add(&subject->headers, PREFIX, line, value + strspn(value, " "));
        if (delivery_traceparent_is_valid(value))
                MUST(strlen(value) >= 55 && strspn(value, "0123456789abcdef-") >= 55);
        if (delivery_tracestate_is_valid(value))
                MUST(strlen(value) >= 1 && strlen(value) <= 512);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        static struct signature_key *key;
        struct delivery_subject subject = {.now_ms = NOW_MS, .body = "{}", .len = 2};
        char *text = malloc(len + 1), *rest = text, *line;

        if (key == NULL) {
                key = signature_key_new("a secret of the fuzzer, long enough", 35);
                MUST(key != NULL);
                policy.keys = &key;
                policy.n_keys = 1;
        }
        memcpy(text, data, len);
        text[len] = '\0';
        while ((line = strsep(&rest, "\n")) != NULL)
                take_line(&subject, line);
        screen(&subject);
        free(text);
        return 0;
}
