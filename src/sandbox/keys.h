#ifndef SANDBOX_KEYS_H
#define SANDBOX_KEYS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

#define KEYS_MAX 64
#define KEYS_ENTITY_MAX 64

/* An API key and its permissions. */
struct api_key {
        char *text;
        char *entity; /* the only entity that it may act for; NULL: any */
        int read_only;
};

struct api_keys {
        struct api_key items[KEYS_MAX];
        size_t n;
};

/**
 * keys_add(keys, text, error):
 * Add a key written as KEY[,read-only][,entity=NAME]. Returns 0, or -1 with the reason, which never quotes
 * the key.
 */
int keys_add(struct api_keys *keys, const char *text, struct error *error) MUST_CHECK;
void keys_clear(struct api_keys *keys);

/* Return the key that equals `presented`, or NULL. */
const struct api_key *keys_find(const struct api_keys *keys, const char *presented);

/* Return whether the key may act for the entity. */
int keys_allow_entity(const struct api_key *key, const char *entity);

/* Return whether the text is a valid entity name: 1 to KEYS_ENTITY_MAX characters of [0-9A-Za-z._-]. */
int keys_is_entity(const char *text);

#endif
