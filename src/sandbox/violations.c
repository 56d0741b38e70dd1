#include "sandbox/violations.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define FIELD_SIZE 160
#define RULES_MAX 16

void
violations_add(struct violations *violations, const char *field, const char *message, ...)
{
        char text[512];
        va_list args;

        if (violations->n == VIOLATIONS_MAX)
                return;
        va_start(args, message);
        (void)vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        violations->items[violations->n++] = (struct http_violation){mem_strdup(field), mem_strdup(text)};
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

/* Write the path and the name. A long name is cut, at a character boundary. */
static char *
field_name(char field[FIELD_SIZE], const char *path, const char *name)
{
        size_t len = strlen(name);

        if (len > 64) {
                for (len = 61; ((unsigned char)name[len] & 0xc0) == 0x80; len--)
                        ;
                (void)snprintf(field, FIELD_SIZE, "%s%.*s...", path, (int)len, name);
        } else {
                (void)snprintf(field, FIELD_SIZE, "%s%s", path, len == 0 ? "\"\"" : name);
        }
        return field;
}

static void
add_unknown(struct violations *violations, const char *field, const char *name,
            const struct member_rule *rules, size_t n)
{
        const char *names[RULES_MAX], *closest;

        for (size_t i = 0; i < n; i++)
                names[i] = rules[i].name;
        closest = text_closest(name, names, n);
        if (closest == NULL)
                violations_add(violations, field, "is unknown");
        else
                violations_add(violations, field, "is unknown; did you mean %s?", closest);
}

static void
check_member(struct violations *violations, const char *path, const struct json_value *member,
             const struct member_rule *rules, size_t n)
{
        char field[FIELD_SIZE];

        (void)field_name(field, path, member->name);
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rules[i].name, member->name) != 0)
                        continue;
                if (member->type != rules[i].type && member->type != JSON_NULL)
                        violations_add(violations, field, "must be %s", json_type_name(rules[i].type));
                return;
        }
        add_unknown(violations, field, member->name, rules, n);
}

void
violations_check_members(struct violations *violations, const char *path, const struct json_value *object,
                         const struct member_rule *rules, size_t n)
{
        char field[FIELD_SIZE];

        if (object->type != JSON_OBJECT) {
                (void)snprintf(field, sizeof(field), "%.*s", (int)strcspn(path, "."), path);
                violations_add(violations, *path == '\0' ? "body" : field, "must be an object");
                return;
        }
        for (const struct json_value *member = object->first; member != NULL; member = member->next)
                check_member(violations, path, member, rules, n);
        for (size_t i = 0; i < n; i++) {
                const struct json_value *member = json_tree_get(object, rules[i].name);

                if (rules[i].required && (member == NULL || member->type == JSON_NULL))
                        violations_add(violations, field_name(field, path, rules[i].name), "is required");
        }
}
