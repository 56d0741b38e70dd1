#ifndef MODEL_DOCUMENTED_FIELD_H
#define MODEL_DOCUMENTED_FIELD_H

#include <stddef.h>

#include "base/json_tree.h"
#include "model/record.h"

/*
 * The fields of a body that the service documents, at the top level or in `data`: the clearance rejection
 * record of its status poll. They are checked if present; null counts as absent.
 */
struct documented_field {
        const char *name; /* for messages: data.error.code */
        const char *const segments[4];
        size_t n_segments;
        const char *must_be;
};

size_t documented_field_count(void);
const struct documented_field *documented_field_at(size_t index);

/* Return whether the field may have a value of this type; text is the value of a string. */
int documented_field_accepts(size_t index, enum json_type type, struct span text);

#endif
