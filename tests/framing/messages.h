#ifndef TESTS_FRAMING_MESSAGES_H
#define TESTS_FRAMING_MESSAGES_H

#include <stddef.h>

#include "http/framing.h"

/* A message that framing found complete. */
struct message {
        size_t start; /* offset of its first byte among the connection's */
        size_t end;   /* and of the first byte after it */
        struct head head;
        char *text; /* of the head */
        char *body; /* without chunk lines; never NULL */
        size_t body_len;
};

/* What framing makes of the bytes of a connection. */
struct messages {
        struct message *list;
        size_t n;
        size_t used;        /* bytes read before the refusal, or all */
        int status;         /* of the refusal, or 0 */
        const char *reason; /* of the refusal, or NULL */
        int is_inside;      /* whether a message was under way at the end */
};

/**
 * messages_read(limits, bytes, len, step, messages):
 * Feed the bytes to framing, at most `step` at a time, as the gate does. Each piece is in memory of its own size, so that a
 * sanitizer sees what is read beyond it. Ends the process if framing breaks its contract. messages_clear() frees them.
 */
void messages_read(const struct framing_limits *limits, const char *bytes, size_t len, size_t step,
                   struct messages *messages);
void messages_clear(struct messages *messages);

/* Whether both are the same in every respect. */
int messages_are_equal(const struct messages *one, const struct messages *other);

#endif
