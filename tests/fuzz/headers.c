/* Screening of delivery headers, given as `name: value` lines: it accepts no malformed headers. */
#include <stdio.h>
#include <string.h>

#include "model/delivery.h"
#include "receiver/screen.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define PREFIX "x-invoicing"
#define NOW_MS INT64_C(1790000000000)

static struct config_source source = {.name = "invoicing", .header_prefix = PREFIX, .tolerance_ms = 300000};

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

/* Check that every refusal has a reason. */
static void
check_refusal(const struct refusal *refusal)
{
        const struct http_error *error = &refusal->error;

        MUST(error->status >= 400 && error->code != NULL && error->message != NULL);
        MUST(error->n_violations <= DELIVERY_N_HEADERS);
        for (size_t i = 0; i < error->n_violations; i++)
                MUST(strncmp(error->violations[i].field, PREFIX "-", strlen(PREFIX) + 1) == 0);
}

static void
screen(struct screen_subject *subject)
{
        struct screened screened = {.source = &source};
        struct refusal refusal;

        for (int check = 0; check < SCREEN_N_CHECKS; check++) {
                if (screen_check((enum screen_check)check, subject, &screened, &refusal) != 0) {
                        check_refusal(&refusal);
                        return;
                }
                if (check == SCREEN_HEADERS)
                        check_delivery(&screened.delivery);
                if (check == SCREEN_TIMESTAMP)
                        MUST(screened.delivery.timestamp >= NOW_MS / 1000 - 300 &&
                             screened.delivery.timestamp <= NOW_MS / 1000 + 300);
        }
        abort(); /* a fuzzer cannot find a genuine signature */
}

static void
take_line(struct screen_subject *subject, char *line)
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
        struct screen_subject subject = {.now_ms = NOW_MS, .body = "{}", .len = 2};
        char *text = malloc(len + 1), *rest = text, *line;

        if (source.n_keys == 0) {
                source.keys = malloc(sizeof(*source.keys));
                source.keys[0] = signature_key_new("a secret of the fuzzer, long enough", 35);
                MUST(source.keys[0] != NULL);
                source.n_keys = 1;
        }
        memcpy(text, data, len);
        text[len] = '\0';
        while ((line = strsep(&rest, "\n")) != NULL)
                take_line(&subject, line);
        screen(&subject);
        free(text);
        return 0;
}
