#ifndef SANDBOX_VIOLATIONS_H
#define SANDBOX_VIOLATIONS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/json_tree.h"
#include "http/answer.h"

/* Further violations are not recorded. */
#define VIOLATIONS_MAX 50

/* The violations found in a payload, each with its field. Initialize with zeros. */
struct violations {
        struct http_violation items[VIOLATIONS_MAX];
        size_t n;
};

/* Record a violation of a field, named by a path such as lines[0].taxCode. message is a printf format. */
void violations_add(struct violations *violations, const char *field, const char *message, ...)
    PRINTF_LIKE(3, 4);
void violations_clear(struct violations *violations);

/* A member that an object may have. null counts as absent; members without a rule are not checked. */
struct member_rule {
        const char *name;
        enum json_type type;
        int required;
};

/**
 * violations_check_members(violations, path, object, rules, n):
 * Record each member that is missing or of the wrong type. path names the object, such as lines[0], and is
 * empty for the whole body. A value that is not an object is a violation as well.
 */
void violations_check_members(struct violations *violations, const char *path,
                              const struct json_value *object, const struct member_rule *rules, size_t n);

#endif
