#include "deliveries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "base/bytes.h"

#define SIGNATURE_SIZE 32
#define NUMBER_LEN 12
#define KIND_LEN 4 /* of a kind's number */
#define ID_LEN 36

struct deliveries {
        size_t n;
        size_t n_kinds;
        uint8_t (*signatures)[SIGNATURE_SIZE];
        char *request; /* common part of all requests */
        size_t len;
        /* Positions of the parts of a request that differ. */
        size_t signature_at;
        size_t id_at;
        size_t number_at;
        size_t kind_at; /* if there are several */
};

static void
fail(const char *what)
{
        fprintf(stderr, "load: %s\n", what);
        exit(EX_OSERR);
}

static void *
memory(size_t n, size_t size)
{
        void *result = calloc(n, size);

        if (result == NULL)
                fail("out of memory");
        return result;
}

/* The parts that differ are at the end of the body, so that the common part is digested only once. */
static void
write_body(char *body, size_t len, size_t n_kinds)
{
        const char *head = n_kinds > 0 ? "{\"data\":\"" : "{\"event\":\"invoice.accepted\",\"data\":\"";
        const char *tail = n_kinds > 0 ? "\",\"event\":\"kind.0000\",\"invoiceId\":\"INV-000000000000\"}"
                                       : "\",\"invoiceId\":\"INV-000000000000\"}";
        size_t head_len = strlen(head), tail_len = strlen(tail);

        for (size_t i = head_len; i < len - tail_len; i++)
                body[i] = (char)('a' + random() % 26);
        memcpy(body, head, head_len);
        memcpy(body + len - tail_len, tail, tail_len);
}

static void
write_number(char *text, size_t len, size_t number)
{
        for (size_t i = len; i > 0; i--) {
                text[i - 1] = (char)('0' + number % 10);
                number /= 10;
        }
}

/* Write a delivery's number into the body. */
static void
number_body(const struct deliveries *deliveries, size_t number, char *request)
{
        write_number(request + deliveries->number_at, NUMBER_LEN, number);
        if (deliveries->n_kinds > 0)
                write_number(request + deliveries->kind_at, KIND_LEN, number % deliveries->n_kinds);
}

static EVP_MAC_CTX *
begin_mac(const char *secret)
{
        char digest[] = "SHA256";
        const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                     OSSL_PARAM_construct_end()};
        EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);

        EVP_MAC_free(mac);
        if (ctx == NULL || EVP_MAC_init(ctx, (const unsigned char *)secret, strlen(secret), params) != 1)
                fail("HMAC-SHA256 does not work");
        return ctx;
}

static void
sign_all(struct deliveries *deliveries, const struct deliveries_spec *spec, const char *timestamp)
{
        EVP_MAC_CTX *head = begin_mac(spec->secret), *ctx;
        char *body = deliveries->request + deliveries->len - spec->body_len;
        char *varying =
            deliveries->request + (spec->n_kinds > 0 ? deliveries->kind_at : deliveries->number_at);
        size_t varying_len = deliveries->len - (size_t)(varying - deliveries->request), len;

        (void)EVP_MAC_update(head, (const unsigned char *)timestamp, strlen(timestamp));
        (void)EVP_MAC_update(head, (const unsigned char *)".", 1);
        (void)EVP_MAC_update(head, (const unsigned char *)body, (size_t)(varying - body));
        for (size_t i = 0; i < deliveries->n; i++) {
                number_body(deliveries, i, deliveries->request);
                ctx = EVP_MAC_CTX_dup(head);
                if (EVP_MAC_update(ctx, (const unsigned char *)varying, varying_len) != 1 ||
                    EVP_MAC_final(ctx, deliveries->signatures[i], &len, SIGNATURE_SIZE) != 1)
                        fail("HMAC-SHA256 does not work");
                if (spec->forged)
                        deliveries->signatures[i][SIGNATURE_SIZE - 1] ^= 1;
                EVP_MAC_CTX_free(ctx);
        }
        EVP_MAC_CTX_free(head);
}

static size_t
after(const char *text, const char *what)
{
        return (size_t)(strstr(text, what) - text) + strlen(what);
}

/* Compose the header section, with an id that is unique to this process. */
static char *
format_head(const struct deliveries_spec *spec, const char *timestamp)
{
        char *head = NULL, id[13];
        uint8_t own[6];

        if (RAND_bytes(own, sizeof(own)) != 1)
                fail("no random bytes");
        bytes_to_hex(own, sizeof(own), id);
        if (asprintf(
                &head,
                "POST /webhooks/invoicing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                "User-Agent: load\r\nContent-Length: %zu\r\n"
                "x-invoicing-timestamp: %s\r\nx-invoicing-webhook-id: %s\r\n"
                "x-invoicing-delivery-id: %.8s-%.4s-4000-8000-%012d\r\n"
                "x-invoicing-signature: sha256=%064d\r\n\r\n",
                spec->body_len, timestamp, spec->webhook_id, id, id + 8, 0, 0) < 0)
                fail("out of memory");
        return head;
}

struct deliveries *
deliveries_new(const struct deliveries_spec *spec)
{
        struct deliveries *deliveries = memory(1, sizeof(*deliveries));
        char timestamp[24], *head;
        size_t head_len;

        (void)snprintf(timestamp, sizeof(timestamp), "%lld", (long long)time(NULL));
        head = format_head(spec, timestamp);
        head_len = strlen(head);
        deliveries->n = spec->n;
        deliveries->n_kinds = spec->n_kinds;
        deliveries->len = head_len + spec->body_len;
        deliveries->request = memory(deliveries->len + 1, 1);
        deliveries->signatures = memory(spec->n, SIGNATURE_SIZE);
        memcpy(deliveries->request, head, head_len);
        deliveries->id_at = after(deliveries->request, "-delivery-id: ") + ID_LEN - NUMBER_LEN;
        deliveries->signature_at = after(deliveries->request, "-signature: sha256=");
        deliveries->number_at = deliveries->len - NUMBER_LEN - 2;
        write_body(deliveries->request + head_len, spec->body_len, spec->n_kinds);
        if (spec->n_kinds > 0)
                deliveries->kind_at = after(deliveries->request + head_len, "\"kind.") + head_len;
        sign_all(deliveries, spec, timestamp);
        free(head);
        return deliveries;
}

void
deliveries_free(struct deliveries *deliveries)
{
        free(deliveries->signatures);
        free(deliveries->request);
        free(deliveries);
}

size_t
deliveries_len(const struct deliveries *deliveries)
{
        return deliveries->len;
}

void
deliveries_begin(const struct deliveries *deliveries, char *request)
{
        memcpy(request, deliveries->request, deliveries->len);
}

void
deliveries_number(const struct deliveries *deliveries, size_t number, char *request)
{
        char signature[2 * SIGNATURE_SIZE + 1];

        bytes_to_hex(deliveries->signatures[number], SIGNATURE_SIZE, signature);
        memcpy(request + deliveries->signature_at, signature, 2 * SIGNATURE_SIZE);
        write_number(request + deliveries->id_at, NUMBER_LEN, number);
        number_body(deliveries, number, request);
}
