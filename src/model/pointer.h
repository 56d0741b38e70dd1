#ifndef MODEL_POINTER_H
#define MODEL_POINTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/record.h"

#define POINTER_MAX_SEGMENTS 16

/* A JSON Pointer (RFC 6901): the member names and array indices that lead to a value, unescaped. */
struct pointer {
        char *text; /* as configured */
        char *segments[POINTER_MAX_SEGMENTS];
        size_t n_segments;
};

/**
 * pointer_parse(text, pointer, error):
 * Read a pointer such as /data/invoiceId. The empty pointer, which means the whole document, is refused:
 * Gatepost looks for nothing there. Return 0, or -1 with the reason; release with pointer_clear().
 */
int pointer_parse(const char *text, struct pointer *pointer, struct error *error) MUST_CHECK;
void pointer_clear(struct pointer *pointer);

#define POINTER_MAX_WATCHES 32

/* A place in a document to look for. */
struct pointer_watch {
        const char *const *segments;
        size_t n_segments; /* 0: matches nothing */
};

/* An open object or array. Bit i represents watch i. */
struct pointer_level {
        uint32_t on_the_way; /* watches that lead into this level */
        uint32_t current;    /* watches whose next segment is the current member or element */
        uint32_t met;        /* watches whose next segment was an earlier member */
        int is_array;
        size_t index; /* of the next element */
};

/*
 * Matches a set of watches against a JSON text in one pass. The caller reports the events of its parser and
 * keeps the depth within the levels that it provides.
 */
struct pointer_walk {
        const struct pointer_watch *watches;
        size_t n_watches; /* at most POINTER_MAX_WATCHES */
        size_t depth;     /* levels that are open */
        struct pointer_level *levels;
};

/* Report a member's name. Return the watches for which it is the second member of that name. */
uint32_t pointer_walk_name(struct pointer_walk *walk, struct span name);

/* Report that a value begins. Return the watches that it matches. */
uint32_t pointer_walk_value(struct pointer_walk *walk);

/* Report that the value is an object or array, and that it ends. */
void pointer_walk_enter(struct pointer_walk *walk, int is_array);
void pointer_walk_leave(struct pointer_walk *walk);

#endif
