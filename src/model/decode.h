#ifndef MODEL_DECODE_H
#define MODEL_DECODE_H

#include <stddef.h>

#include "base/compiler.h"
#include "model/record.h"
#include "model/rules.h"

#define DECODE_MAX_DEPTH 64 /* the outermost object is level 1 */
#define DECODE_DETAIL_SIZE 256

/* The result of reading a body, named like the quarantine reasons. */
enum decode_result {
        DECODE_OK,
        /* not UTF-8, not JSON, not an object, too deep, or the kind's member duplicated */
        DECODE_MALFORMED_JSON,
        DECODE_MISSING_KIND, /* the kind's pointer leads nowhere, or to null */
        DECODE_INVALID_KIND, /* the kind is not a string */
};

/*
 * The values found in a body. The spans are valid until the next use of the decoder; without data: missing.
 */
struct decoded {
        struct span kind;
        struct span
            key; /* the characters of a string or the literal of a number; other values count as missing */
        struct span subject; /* strings only */
        /* The error, for people, unless the result is DECODE_OK. */
        char detail[DECODE_DETAIL_SIZE];
        /* With DECODE_OK: the first documented field of a wrong type or format, or empty. */
        char field_fault[DECODE_DETAIL_SIZE];
};

/* A reader of bodies, for one thread at a time. */
struct decoder;

struct decoder *decoder_new(void) MUST_CHECK;
void decoder_free(struct decoder *decoder);

/**
 * decoder_run(decoder, rules, body, decoded, result):
 * Read a body by a source's rules, in one pass. UTF-8 is checked by RFC 3629, JSON by RFC 8259. The last of
 * duplicate members counts, but the member of the kind must not be duplicated. An escaped half of a surrogate
 * pair reads as U+FFFD. Return 0, or -1 when out of memory.
 */
int decoder_run(struct decoder *decoder, const struct event_rules *rules, struct span body,
                struct decoded *decoded, enum decode_result *result) MUST_CHECK;

#endif
