#include "model/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/bytes.h"

static const char prefix[] = "sha256=";
#define PREFIX_LEN (sizeof(prefix) - 1)

/*
 * keyed has absorbed the key and nothing else; each signature starts from a duplicate of it. One duplicate is
 * kept for reuse, because resetting it to the same key costs half as much as duplicating. A thread that finds
 * it in use makes another.
 */
struct signature_key {
        EVP_MAC_CTX *keyed;
        _Atomic(EVP_MAC_CTX *) *idle; /* NULL: OpenSSL cannot reset contexts */
};

/*
 * Return whether EVP_MAC_init() without a key resets a context. In the first releases of OpenSSL 3.0 it does
 * not.
 */
static int
can_reset(const struct signature_key *key)
{
        static const unsigned char text[] = "1795230000.{}";
        EVP_MAC_CTX *hmac = EVP_MAC_CTX_dup(key->keyed);
        uint8_t first[SIGNATURE_SIZE], second[SIGNATURE_SIZE];
        size_t size;
        int ok = hmac != NULL && EVP_MAC_update(hmac, text, sizeof(text)) &&
                 EVP_MAC_final(hmac, first, &size, SIGNATURE_SIZE) && EVP_MAC_init(hmac, NULL, 0, NULL) &&
                 EVP_MAC_update(hmac, text, sizeof(text)) &&
                 EVP_MAC_final(hmac, second, &size, SIGNATURE_SIZE);

        EVP_MAC_CTX_free(hmac);
        return ok && CRYPTO_memcmp(first, second, SIGNATURE_SIZE) == 0;
}

struct signature_key *
signature_key_new(const void *secret, size_t len)
{
        struct signature_key *key = calloc(1, sizeof(*key));
        EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        OSSL_PARAM params[2] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"},
                                                                 0),
                                OSSL_PARAM_construct_end()};

        if (key != NULL && hmac != NULL)
                key->keyed = EVP_MAC_CTX_new(hmac);
        if (key == NULL || key->keyed == NULL || !EVP_MAC_init(key->keyed, secret, len, params)) {
                signature_key_free(key);
                key = NULL;
        }
        EVP_MAC_free(hmac);
        if (key != NULL && can_reset(key))
                key->idle = calloc(1, sizeof(*key->idle));
        return key;
}

void
signature_key_free(struct signature_key *key)
{
        if (key == NULL)
                return;
        if (key->idle != NULL)
                EVP_MAC_CTX_free(atomic_load(key->idle));
        free(key->idle);
        EVP_MAC_CTX_free(key->keyed);
        free(key);
}

/* A piece of a signed text. */
struct piece {
        const void *bytes;
        size_t len;
};

/*
 * Return a context that has absorbed only the key; release it with put_context(). Return NULL if memory or
 * OpenSSL fails.
 */
static EVP_MAC_CTX *
take_context(const struct signature_key *key)
{
        EVP_MAC_CTX *hmac = key->idle == NULL ? NULL : atomic_exchange(key->idle, NULL);

        if (hmac == NULL)
                return EVP_MAC_CTX_dup(key->keyed);
        if (EVP_MAC_init(hmac, NULL, 0, NULL))
                return hmac;
        EVP_MAC_CTX_free(hmac);
        return NULL;
}

static void
put_context(const struct signature_key *key, EVP_MAC_CTX *hmac)
{
        EVP_MAC_CTX_free(key->idle == NULL ? hmac : atomic_exchange(key->idle, hmac));
}

static int
compute(const struct signature_key *key, const struct piece *pieces, size_t n,
        uint8_t signature[SIGNATURE_SIZE])
{
        EVP_MAC_CTX *hmac = take_context(key);
        int ok = hmac != NULL;
        size_t size = 0;

        for (size_t i = 0; i < n && ok; i++)
                ok = EVP_MAC_update(hmac, pieces[i].bytes, pieces[i].len);
        ok = ok && EVP_MAC_final(hmac, signature, &size, SIGNATURE_SIZE) && size == SIGNATURE_SIZE;
        if (ok)
                put_context(key, hmac);
        else
                EVP_MAC_CTX_free(hmac);
        return ok ? 0 : -1;
}

int
signature_compute(const struct signature_key *key, const char *timestamp, const void *body, size_t len,
                  uint8_t signature[SIGNATURE_SIZE])
{
        const struct piece pieces[] = {{timestamp, strlen(timestamp)}, {".", 1}, {body, len}};

        return compute(key, pieces, ARRAY_LEN(pieces), signature);
}

int
signature_sign(const struct signature_key *key, const void *head, size_t head_len, const void *body,
               size_t len, uint8_t signature[SIGNATURE_SIZE])
{
        const struct piece pieces[] = {{head, head_len}, {body, len}};

        return compute(key, pieces, ARRAY_LEN(pieces), signature);
}

int
signature_verify(struct signature_key *const *keys, size_t n_keys, const char *timestamp, const void *body,
                 size_t len, const uint8_t signature[SIGNATURE_SIZE])
{
        uint8_t expected[SIGNATURE_SIZE];
        int found = 0, failed = 0;

        for (size_t i = 0; i < n_keys; i++) {
                if (signature_compute(keys[i], timestamp, body, len, expected) != 0)
                        failed = 1;
                else if (CRYPTO_memcmp(expected, signature, SIGNATURE_SIZE) == 0)
                        found = (int)i + 1;
        }
        OPENSSL_cleanse(expected, sizeof(expected));
        return failed && found == 0 ? -1 : found;
}

int
signature_matches(const struct signature_key *key, const void *head, size_t head_len, const void *body,
                  size_t len, const uint8_t signature[SIGNATURE_SIZE])
{
        uint8_t expected[SIGNATURE_SIZE];
        int matches = -1;

        if (signature_sign(key, head, head_len, body, len, expected) == 0)
                matches = CRYPTO_memcmp(expected, signature, SIGNATURE_SIZE) == 0;
        OPENSSL_cleanse(expected, sizeof(expected));
        return matches;
}

int
signature_parse(const char *text, size_t len, uint8_t signature[SIGNATURE_SIZE])
{
        if (len != SIGNATURE_HEADER_LEN || memcmp(text, prefix, PREFIX_LEN) != 0)
                return -1;
        return bytes_from_hex(text + PREFIX_LEN, signature, SIGNATURE_SIZE);
}

void
signature_format(const uint8_t signature[SIGNATURE_SIZE], char text[SIGNATURE_HEADER_LEN + 1])
{
        memcpy(text, prefix, PREFIX_LEN);
        bytes_to_hex(signature, SIGNATURE_SIZE, text + PREFIX_LEN);
}
