#ifndef TESTS_FRAMING_MESSAGES_H
#define TESTS_FRAMING_MESSAGES_H

#include <stddef.h>

#include "http/framing.h"

/* A complete message. */
struct message {
        size_t start; /* offset of its first byte in the connection */
        size_t end;   /* offset of the first byte after it */
        struct head head;
        char *text; /* the header section */
        char *body; /* without chunk lines; never NULL */
        size_t body_len;
};

/* The messages in the bytes of a connection. */
struct messages {
        struct message *list;
        size_t n;
        size_t used;        /* bytes consumed before the error, or all */
        int status;         /* of the error, or 0 */
        const char *reason; /* of the error, or NULL */
        int is_inside;      /* the bytes end within a message */
};

/**
 * messages_read(limits, bytes, len, step, messages):
 * Feed the bytes to framing, at most `step` at a time. Each piece has its own allocation, so that a sanitizer
 * detects reads beyond it. Ends the process if framing breaks its contract. messages_clear() frees the
 * messages.
 */
void messages_read(const struct framing_limits *limits, const char *bytes, size_t len, size_t step,
                   struct messages *messages);
void messages_clear(struct messages *messages);

/* Return whether both are equal in every respect. */
int messages_are_equal(const struct messages *one, const struct messages *other);

#endif
