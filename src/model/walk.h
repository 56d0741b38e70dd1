#ifndef MODEL_WALK_H
#define MODEL_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/fields.h"
#include "model/record.h"

#define WALK_MAX_WATCHES 32

/* A place in a document to look out for: the names and indices that lead to it. */
struct watch {
        const char *const *segments;
        size_t n_segments; /* at least 1; else it is never met */
};

/* Where one is: which watches lead into the object or array on this level, and which its current value answers to. */
struct walk_level {
        uint32_t on_the_way; /* bits of watches */
        uint32_t current;
        uint32_t met; /* watches that some earlier member answered to */
        int is_array;
        size_t index; /* of the next element */
};

/*
 * Follows a JSON text's events and says which of a set of watches a value answers to. No JSON library in it. The
 * caller keeps the depth within max_depth.
 */
struct walk {
        const struct watch *watches;
        size_t n_watches;
        size_t depth; /* levels that are open */
        struct walk_level *levels;
};

/* A member's name came. Returns the watches that a second member of that name on their way answers to. */
uint32_t walk_name(struct walk *walk, struct span name);

/* A value begins. Returns the watches that end at it. */
uint32_t walk_value(struct walk *walk);

/* The value that began is an object or array, whose level opens; it ends. */
void walk_enter(struct walk *walk, int is_array);
void walk_leave(struct walk *walk);

#endif
