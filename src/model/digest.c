#include "model/digest.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

/* Algorithms are fetched once, because fetching one costs more than hashing a small body. */
struct digest {
        EVP_MD *sha256;
        EVP_MD_CTX *context;
        EVP_MAC_CTX *mac;
        uint8_t key[DIGEST_KEY_SIZE];
};

/* Return NULL if OpenSSL does not have the algorithm, or memory fails. */
static EVP_MAC_CTX *
new_mac(const char *algorithm, const OSSL_PARAM *params)
{
        EVP_MAC *mac = EVP_MAC_fetch(NULL, algorithm, NULL);
        EVP_MAC_CTX *context = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);

        EVP_MAC_free(mac); /* the context has a reference */
        if (context != NULL && !EVP_MAC_CTX_set_params(context, params)) {
                EVP_MAC_CTX_free(context);
                return NULL;
        }
        return context;
}

/* OpenSSL's FIPS provider has no Poly1305. */
static EVP_MAC_CTX *
new_poly1305_or_hmac(void)
{
        const OSSL_PARAM none[] = {OSSL_PARAM_construct_end()};
        const OSSL_PARAM sha256[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                                      (char[]){"SHA256"}, 0),
                                     OSSL_PARAM_construct_end()};
        EVP_MAC_CTX *mac;

        (void)ERR_set_mark();
        mac = new_mac("POLY1305", none);
        (void)ERR_pop_to_mark();
        return mac != NULL ? mac : new_mac("HMAC", sha256);
}

struct digest *
digest_new(const uint8_t *key)
{
        struct digest *digest = calloc(1, sizeof(*digest));

        if (digest == NULL)
                return NULL;
        digest->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        digest->context = EVP_MD_CTX_new();
        digest->mac = new_poly1305_or_hmac();
        if (digest->sha256 == NULL || digest->context == NULL || digest->mac == NULL ||
            (key == NULL && RAND_priv_bytes(digest->key, sizeof(digest->key)) != 1)) {
                digest_free(digest);
                return NULL;
        }
        if (key != NULL)
                memcpy(digest->key, key, sizeof(digest->key));
        return digest;
}

void
digest_free(struct digest *digest)
{
        if (digest == NULL)
                return;
        EVP_MAC_CTX_free(digest->mac);
        EVP_MD_CTX_free(digest->context);
        EVP_MD_free(digest->sha256);
        free(digest);
}

/* Add a span after its length, so that different lists of spans never collide. */
static int
add(struct digest *digest, struct span span)
{
        uint64_t len = span.len;

        return EVP_DigestUpdate(digest->context, &len, sizeof(len)) &&
               EVP_DigestUpdate(digest->context, span.data, span.len);
}

static int
begin_mac(struct digest *digest)
{
        return EVP_MAC_init(digest->mac, digest->key, sizeof(digest->key), NULL);
}

/* Write the first bytes of the MAC; HMAC-SHA256 has more. */
static int
end_mac(struct digest *digest, uint8_t mac[DEDUP_IDENTITY_SIZE])
{
        uint8_t whole[EVP_MAX_MD_SIZE];
        size_t len;

        if (!EVP_MAC_final(digest->mac, whole, &len, sizeof(whole)) || len < DEDUP_IDENTITY_SIZE)
                return 0;
        memcpy(mac, whole, DEDUP_IDENTITY_SIZE);
        return 1;
}

/* Like add(). */
static int
add_to_mac(struct digest *digest, struct span span)
{
        uint64_t len = span.len;

        return EVP_MAC_update(digest->mac, (const uint8_t *)&len, sizeof(len)) &&
               EVP_MAC_update(digest->mac, (const uint8_t *)span.data, span.len);
}

int
digest_identity(struct digest *digest, const struct record *record, uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        return begin_mac(digest) && add_to_mac(digest, record->source) && add_to_mac(digest, record->key) &&
                       add_to_mac(digest, record->released) && end_mac(digest, identity)
                   ? 0
                   : -1;
}

/* Adds more spans than digest_identity(), so that the two never collide. */
int
digest_marked(struct digest *digest, const struct record *record, const char *mark, uint64_t body,
              uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        return begin_mac(digest) && add_to_mac(digest, record->source) && add_to_mac(digest, record->key) &&
                       add_to_mac(digest, record->released) &&
                       add_to_mac(digest, (struct span){mark, strlen(mark)}) &&
                       add_to_mac(digest, (struct span){(const char *)&body, sizeof(body)}) &&
                       end_mac(digest, identity)
                   ? 0
                   : -1;
}

int
digest_body(struct digest *digest, const struct record *record, uint64_t *body)
{
        uint8_t mac[DEDUP_IDENTITY_SIZE];

        if (!begin_mac(digest) ||
            !EVP_MAC_update(digest->mac, (const uint8_t *)record->body.data, record->body.len) ||
            !end_mac(digest, mac))
                return -1;
        memcpy(body, mac, sizeof(*body));
        return 0;
}

int
digest_begin(struct digest *digest, const char *topic, struct span key, struct span value)
{
        if (!EVP_DigestInit_ex2(digest->context, digest->sha256, NULL) ||
            !add(digest, (struct span){topic, strlen(topic)}) || !add(digest, key) || !add(digest, value))
                return -1;
        return 0;
}

int
digest_header(struct digest *digest, const char *name, struct span value)
{
        if (strcmp(name, RECORD_DETAIL) == 0)
                return 0;
        return add(digest, (struct span){name, strlen(name)}) && add(digest, value) ? 0 : -1;
}

int
digest_end(struct digest *digest, uint8_t fingerprint[DIGEST_FINGERPRINT_SIZE])
{
        uint8_t full[EVP_MAX_MD_SIZE];

        if (!EVP_DigestFinal_ex(digest->context, full, NULL))
                return -1;
        memcpy(fingerprint, full, DIGEST_FINGERPRINT_SIZE);
        return 0;
}
