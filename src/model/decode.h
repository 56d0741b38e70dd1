#ifndef MODEL_DECODE_H
#define MODEL_DECODE_H

#include <stddef.h>

#include "base/compiler.h"
#include "model/record.h"
#include "model/rules.h"

#define DECODE_MAX_DEPTH 64 /* the outermost object is level 1 */
#define DECODE_DETAIL_SIZE 256

/* What a body is, as far as publishing it goes. The names are those of the quarantine reasons. */
enum decode_result {
        DECODE_OK,
        DECODE_MALFORMED_JSON, /* not UTF-8, not JSON, no object at the top, too deep, the kind's member twice */
        DECODE_MISSING_KIND, /* the kind's pointer leads nowhere, or to null */
        DECODE_INVALID_KIND, /* the kind is not a string */
};

/* What was found in a body. The spans are valid until the decoder is used again; without data: not there. */
struct decoded {
        struct span kind;
        struct span
            key; /* of a string its characters, of a number its JSON text; anything else counts as not there */
        struct span subject;             /* of a string only */
        char detail[DECODE_DETAIL_SIZE]; /* for a person: what is wrong, when the result is not DECODE_OK */
        char field_fault[DECODE_DETAIL_SIZE]; /* the first documented field of a wrong type, or empty */
};

/* Reads bodies. For one thread at a time. */
struct decoder;

struct decoder *decoder_new(void) MUST_CHECK;
void decoder_free(struct decoder *decoder);

/**
 * decoder_run(decoder, rules, body, decoded, result):
 * Read a body by a source's rules. One pass; strings are checked as UTF-8 by RFC 3629, JSON by RFC 8259. Of a member
 * that is there twice the last counts, but the kind's may not be. Half a surrogate pair, escaped, reads as U+FFFD.
 * Returns 0, or -1 when memory fails.
 */
int decoder_run(struct decoder *decoder, const struct event_rules *rules, struct span body,
                struct decoded *decoded, enum decode_result *result) MUST_CHECK;

#endif
