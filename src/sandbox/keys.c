#include "sandbox/keys.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/mem.h"
#include "config/secrets.h"

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

static void
clear_key(struct api_key *key)
{
        secrets_free(key->text, strlen(key->text));
        free(key->entity);
}

int
keys_add(struct api_keys *keys, const char *text, struct error *error)
{
        size_t len = strcspn(text, ",");
        struct api_key key = {.entity = NULL};
        int result = 0;

        if (keys->n == KEYS_MAX)
                return error_set(error, "at most %d keys are allowed", KEYS_MAX);
        if (len == 0)
                return error_set(error, "the key is empty");
        key.text = mem_strndup(text, len);
        for (const char *word = text + len; *word == ',' && result == 0; word += len) {
                len = strcspn(++word, ",");
                result = restrict_key(&key, word, len, error);
        }
        if (result == 0)
                keys->items[keys->n++] = key;
        else
                clear_key(&key);
        return result;
}

void
keys_clear(struct api_keys *keys)
{
        for (size_t i = 0; i < keys->n; i++)
                clear_key(&keys->items[i]);
        keys->n = 0;
}

const struct api_key *
keys_find(const struct api_keys *keys, const char *presented)
{
        size_t len = strlen(presented);

        for (size_t i = 0; i < keys->n; i++) {
                const struct api_key *key = &keys->items[i];

                if (strlen(key->text) == len && CRYPTO_memcmp(key->text, presented, len) == 0)
                        return key;
        }
        return NULL;
}

int
keys_allow_entity(const struct api_key *key, const char *entity)
{
        return key->entity == NULL || strcmp(key->entity, entity) == 0;
}
