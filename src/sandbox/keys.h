#ifndef SANDBOX_KEYS_H
#define SANDBOX_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

#define KEYS_MAX 64
#define KEY_DIGEST_SIZE 32
#define ENTITY_MAX 64

/* An API key and what it may do. The key itself is not kept, but its SHA-256. */
struct api_key {
        uint8_t digest[KEY_DIGEST_SIZE];
        char *entity; /* the only one that it may act for; NULL: any */
        int read_only;
};

struct api_keys {
        struct api_key items[KEYS_MAX];
        size_t n;
};

/**
 * keys_add(keys, text, error):
 * Add a key written as KEY[,read-only][,entity=NAME]. Returns 0, or -1 with the reason, which never quotes the key.
 */
int keys_add(struct api_keys *keys, const char *text, struct error *error) MUST_CHECK;
void keys_clear(struct api_keys *keys);

/* The key that a request carries, or NULL. Compares with all of them, each in constant time. */
const struct api_key *keys_find(const struct api_keys *keys, const char *given);

/* Whether the key may act for the entity. */
int key_covers(const struct api_key *key, const char *entity);

/* Whether the text can name an entity: 1 to ENTITY_MAX of [0-9A-Za-z._-]. */
int entity_is_name(const char *text);

#endif
