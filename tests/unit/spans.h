#ifndef TESTS_UNIT_SPANS_H
#define TESTS_UNIT_SPANS_H

#include <string.h>

#include "model/record.h"

/* The bytes of a string literal, which may contain NULs; the second is for static tables. */
#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})
#define SPAN_OF(literal) \
        { \
                (literal), sizeof(literal) - 1 \
        }

#define NO_SPAN ((struct span){NULL, 0})

static inline int
span_equals(struct span span, struct span other)
{
        if (span.data == NULL || other.data == NULL)
                return span.data == other.data;
        return span.len == other.len && memcmp(span.data, other.data, span.len) == 0;
}

/* Fails the test unless the span has the literal's bytes. */
#define assert_span(span, literal) \
        ck_assert_msg(span_equals((span), SPAN(literal)), "'%.*s' is not '%s'", (int)(span).len, \
                      (span).data == NULL ? "" : (span).data, (literal))

#endif
