#include "sandbox/keys.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/mem.h"

#define KEY_LEN_MAX 256

static int
digest(const char *text, size_t len, uint8_t out[KEYS_DIGEST_SIZE])
{
        return EVP_Digest(text, len, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

int
keys_is_entity(const char *text)
{
        size_t len = strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-");

        return len > 0 && len <= KEYS_ENTITY_MAX && text[len] == '\0';
}

/* Apply one restriction that follows the key. */
static int
restrict_key(struct api_key *key, const char *word, size_t len, struct error *error)
{
        char *text = mem_strndup(word, len);
        int result = 0;

        if (strcmp(text, "read-only") == 0)
                key->read_only = 1;
        else if (strncmp(text, "entity=", 7) == 0 && key->entity == NULL && keys_is_entity(text + 7))
                key->entity = mem_strdup(text + 7);
        else
                result = error_set(
                    error,
                    "a key may be followed by read-only and entity=NAME (up to %d of A-Z a-z 0-9 . _ -)",
                    KEYS_ENTITY_MAX);
        free(text);
        return result;
}

static int
is_visible(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++) {
                if (text[i] <= ' ' || text[i] > '~')
                        return 0;
        }
        return len > 0 && len <= KEY_LEN_MAX;
}

int
keys_add(struct api_keys *keys, const char *text, struct error *error)
{
        size_t len = strcspn(text, ",");
        struct api_key key = {.entity = NULL};
        int result = 0;

        if (keys->n == KEYS_MAX)
                return error_set(error, "at most %d keys are allowed", KEYS_MAX);
        if (!is_visible(text, len))
                return error_set(error,
                                 "a key must have 1 to %d visible ASCII characters other than the comma",
                                 KEY_LEN_MAX);
        if (digest(text, len, key.digest) != 0)
                return error_set(error, "cannot compute the key's digest");
        for (const char *word = text + len; *word == ',' && result == 0; word += len) {
                len = strcspn(++word, ",");
                result = restrict_key(&key, word, len, error);
        }
        if (result == 0)
                keys->items[keys->n++] = key;
        else
                free(key.entity);
        return result;
}

void
keys_clear(struct api_keys *keys)
{
        for (size_t i = 0; i < keys->n; i++)
                free(keys->items[i].entity);
        OPENSSL_cleanse(keys, sizeof(*keys));
}

const struct api_key *
keys_find(const struct api_keys *keys, const char *presented)
{
        const struct api_key *found = NULL;
        uint8_t presented_digest[KEYS_DIGEST_SIZE];

        if (digest(presented, strlen(presented), presented_digest) != 0)
                return NULL;
        for (size_t i = 0; i < keys->n; i++) {
                if (CRYPTO_memcmp(keys->items[i].digest, presented_digest, sizeof(presented_digest)) == 0)
                        found = &keys->items[i];
        }
        return found;
}

int
keys_allow_entity(const struct api_key *key, const char *entity)
{
        return key->entity == NULL || strcmp(key->entity, entity) == 0;
}
