#include "sandbox/violations.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define FIELD_SIZE 64

void
violations_add(struct violations *violations, const char *field, const char *message, ...)
{
        va_list args;

        if (violations->n == VIOLATIONS_MAX)
                return;
        va_start(args, message);
        violations->items[violations->n++] =
            (struct http_violation){mem_strdup(field), mem_vprintf(message, args)};
        va_end(args);
}

void
violations_clear(struct violations *violations)
{
        for (size_t i = 0; i < violations->n; i++) {
                free((char *)violations->items[i].field);
                free((char *)violations->items[i].message);
        }
        violations->n = 0;
}

static const char *
type_name(enum json_type type)
{
        static const char *const names[] = {
            [JSON_NULL] = "null",       [JSON_BOOLEAN] = "true or false", [JSON_NUMBER] = "a number",
            [JSON_STRING] = "a string", [JSON_OBJECT] = "an object",      [JSON_ARRAY] = "an array"};

        return names[type];
}

void
violations_check_members(struct violations *violations, const char *path, const struct json_value *object,
                         const struct member_rule *rules, size_t n)
{
        char field[FIELD_SIZE];

        if (object->type != JSON_OBJECT) {
                violations_add(violations, *path == '\0' ? "body" : path, "must be an object");
                return;
        }
        for (size_t i = 0; i < n; i++) {
                const struct json_value *member = json_tree_get(object, rules[i].name);

                (void)snprintf(field, sizeof(field), "%s%s%s", path, *path == '\0' ? "" : ".", rules[i].name);
                if (member == NULL || member->type == JSON_NULL) {
                        if (rules[i].required)
                                violations_add(violations, field, "is required");
                } else if (member->type != rules[i].type) {
                        violations_add(violations, field, "must be %s", type_name(rules[i].type));
                }
        }
}
