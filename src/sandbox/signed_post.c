#include "sandbox/signed_post.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/delivery.h"

#define LINE_SIZE 256
#define SERVICE_MAX 32

static int
is_word(const char *text, const char *characters, size_t max)
{
        size_t len = strspn(text, characters);

        return len > 0 && len <= max && text[len] == '\0';
}

int
signed_post_is_service(const char *text)
{
        return is_word(text, "abcdefghijklmnopqrstuvwxyz0123456789-", SERVICE_MAX);
}

int
signed_post_is_id(const char *text)
{
        return is_word(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-",
                       DELIVERY_ID_MAX);
}

struct transfer *
signed_post_start(struct transport *transport, const struct signed_post *post, transport_done *done,
                  void *arg)
{
        char lines[DELIVERY_N_HEADERS][LINE_SIZE], timestamp[24], text[SIGNATURE_HEADER_LEN + 1];
        const char *const values[DELIVERY_N_HEADERS] = {[DELIVERY_SIGNATURE] = text,
                                                        [DELIVERY_TIMESTAMP] = timestamp,
                                                        [DELIVERY_WEBHOOK_ID] = post->webhook_id,
                                                        [DELIVERY_ID] = post->delivery_id};
        const char *headers[DELIVERY_N_HEADERS];
        uint8_t signature[SIGNATURE_SIZE];
        const struct transport_post unsigned_post = {.url = post->url,
                                                     .headers = headers,
                                                     .n_headers = DELIVERY_N_HEADERS,
                                                     .body = post->body,
                                                     .len = post->len};

        (void)snprintf(timestamp, sizeof(timestamp), "%010" PRId64, post->timestamp);
        if (signature_compute(post->key, timestamp, post->body, post->len, signature) != 0)
                return NULL;
        signature_format(signature, text);
        for (size_t i = 0; i < DELIVERY_N_HEADERS; i++) {
                (void)snprintf(lines[i], sizeof(lines[i]), "x-%s-%s: %s", post->service,
                               delivery_header_suffix((enum delivery_header)i), values[i]);
                headers[i] = lines[i];
        }
        return transport_start(transport, &unsigned_post, done, arg);
}
