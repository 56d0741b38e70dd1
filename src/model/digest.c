#include "model/digest.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

/* Fetching an algorithm costs more than hashing a small body, so it is done once. */
struct digest {
        EVP_MD *sha256;
        EVP_MD_CTX *context;
};

struct digest *
digest_new(void)
{
        struct digest *digest = calloc(1, sizeof(*digest));

        if (digest == NULL)
                return NULL;
        digest->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        digest->context = EVP_MD_CTX_new();
        if (digest->sha256 == NULL || digest->context == NULL) {
                digest_free(digest);
                return NULL;
        }
        return digest;
}

void
digest_free(struct digest *digest)
{
        if (digest == NULL)
                return;
        EVP_MD_CTX_free(digest->context);
        EVP_MD_free(digest->sha256);
        free(digest);
}

/* A span with its length before it, so that no two lists of spans look alike. */
static int
add(struct digest *digest, struct span span)
{
        uint64_t len = span.len;

        return EVP_DigestUpdate(digest->context, &len, sizeof(len)) &&
               EVP_DigestUpdate(digest->context, span.data, span.len);
}

int
digest_identity(struct digest *digest, const struct record *record, uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        uint8_t full[EVP_MAX_MD_SIZE];

        if (!EVP_DigestInit_ex2(digest->context, digest->sha256, NULL) || !add(digest, record->source) ||
            !add(digest, record->key) || !add(digest, record->released) ||
            !EVP_DigestFinal_ex(digest->context, full, NULL))
                return -1;
        memcpy(identity, full, DEDUP_IDENTITY_SIZE);
        return 0;
}

int
digest_body(struct digest *digest, const struct record *record, uint64_t *body)
{
        uint8_t full[EVP_MAX_MD_SIZE];

        if (!EVP_DigestInit_ex2(digest->context, digest->sha256, NULL) ||
            !EVP_DigestUpdate(digest->context, record->body.data, record->body.len) ||
            !EVP_DigestFinal_ex(digest->context, full, NULL))
                return -1;
        memcpy(body, full, sizeof(*body));
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
