#ifndef SANDBOX_VIOLATIONS_H
#define SANDBOX_VIOLATIONS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/json_tree.h"
#include "http/answer.h"

#define VIOLATIONS_MAX 50 /* more are not listed */

/* What is wrong with a payload, field by field. Begin with zeros. */
struct violations {
        struct http_violation items[VIOLATIONS_MAX];
        size_t n;
};

/* Note that something is wrong with a field, named by a path such as lines[0].taxCode. message is a printf format. */
void violations_add(struct violations *violations, const char *field, const char *message, ...)
    PRINTF_LIKE(3, 4);
void violations_clear(struct violations *violations);

/* What an object may have in it. null counts as absent. */
struct member_rule {
        const char *name;
        enum json_type type;
        int required;
};

/**
 * violations_check_members(violations, path, object, rules, n):
 * Note each member that is unknown, is of another type, or is missing. path leads to the object, as `lines[0].`, or is
 * empty. object may be a value of another type, which is noted as such.
 */
void violations_check_members(struct violations *violations, const char *path,
                              const struct json_value *object, const struct member_rule *rules, size_t n);

#endif
