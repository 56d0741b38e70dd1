#include "base/json_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define MAX_COUNT 1e15 /* larger numbers are not counts */

struct builder {
        struct json_value *root;
        struct json_value *open; /* the object or array being filled */
        char *name;              /* of the next member */
        struct error *error;
};

static struct json_value *
add(struct builder *builder, enum json_type type)
{
        struct json_value *value = mem_alloc(sizeof(*value)), *open = builder->open;

        value->type = type;
        value->name = builder->name;
        value->parent = open;
        builder->name = NULL;
        if (open == NULL) {
                builder->root = value;
        } else {
                if (open->last == NULL)
                        open->first = value;
                else
                        open->last->next = value;
                open->last = value;
                open->n++;
        }
        return value;
}

static int
on_value(void *arg, enum json_type type, const char *text, size_t len)
{
        struct builder *builder = arg;
        struct json_value *value;

        if (type == JSON_STRING && memchr(text, '\0', len) != NULL)
                return error_set(builder->error, "a string contains a NUL character");
        value = add(builder, type);
        if (type == JSON_STRING || type == JSON_NUMBER)
                value->text = mem_strndup(text, len);
        else if (type == JSON_BOOLEAN)
                value->flag = *text == 't';
        else if (type != JSON_NULL)
                builder->open = value;
        return 0;
}

static int
on_name(void *arg, const char *text, size_t len)
{
        struct builder *builder = arg;

        if (memchr(text, '\0', len) != NULL)
                return error_set(builder->error, "a name contains a NUL character");
        builder->name = mem_strndup(text, len);
        return 0;
}

static int
compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
has_name_twice(const struct json_value *object)
{
        char **names = mem_alloc(object->n * sizeof(*names));
        size_t n = 0;
        int twice = 0;

        for (const struct json_value *member = object->first; member != NULL; member = member->next)
                names[n++] = member->name;
        qsort(names, n, sizeof(*names), compare_names);
        for (size_t i = 1; i < n; i++)
                twice |= strcmp(names[i - 1], names[i]) == 0;
        free(names);
        return twice;
}

static int
on_end(void *arg, enum json_type type)
{
        struct builder *builder = arg;

        if (type == JSON_OBJECT && has_name_twice(builder->open))
                return error_set(builder->error, "duplicate member");
        builder->open = builder->open->parent;
        return 0;
}

struct json_value *
json_tree_parse(const char *text, size_t len, struct error *error)
{
        static const struct json_events events = {on_value, on_name, on_end};
        struct builder builder = {.error = error};

        if (json_read(text, len, JSON_TREE_MAX_DEPTH, &events, &builder, error) == 0)
                return builder.root;
        free(builder.name);
        json_tree_free(builder.root);
        return NULL;
}

/* Without recursion: free a leaf, then its siblings, then their parent. */
void
json_tree_free(struct json_value *root)
{
        struct json_value *value = root;

        while (value != NULL) {
                struct json_value *gone = value;

                if (value->first != NULL) {
                        value = value->first;
                        gone->first = NULL;
                        continue;
                }
                value = gone == root ? NULL : gone->next != NULL ? gone->next : gone->parent;
                free(gone->name);
                free(gone->text);
                free(gone);
        }
}

const struct json_value *
json_tree_get(const struct json_value *value, const char *name)
{
        if (value == NULL || value->type != JSON_OBJECT)
                return NULL;
        for (const struct json_value *member = value->first; member != NULL; member = member->next) {
                if (strcmp(member->name, name) == 0)
                        return member;
        }
        return NULL;
}

const char *
json_tree_text(const struct json_value *value, const char *name)
{
        const struct json_value *member = json_tree_get(value, name);

        return member != NULL && member->type == JSON_STRING ? member->text : NULL;
}

const struct json_value *
json_tree_at(const struct json_value *value, const char *path)
{
        char name[64];

        while (value != NULL && *path != '\0') {
                size_t len = strcspn(path, ".");

                (void)snprintf(name, sizeof(name), "%.*s", (int)len, path);
                value = json_tree_get(value, name);
                path += len + (path[len] == '.');
        }
        return value;
}

double
json_tree_value(const struct json_value *value)
{
        double number = value == NULL || value->type != JSON_NUMBER ? 0 : strtod(value->text, NULL);

        return number >= -MAX_COUNT && number <= MAX_COUNT ? number : 0;
}

double
json_tree_number(const struct json_value *value, const char *path)
{
        return json_tree_value(json_tree_at(value, path));
}

int
json_tree_is_true(const struct json_value *value, const char *path)
{
        const struct json_value *flag = json_tree_at(value, path);

        return flag != NULL && flag->type == JSON_BOOLEAN && flag->flag;
}

int
json_tree_is_false(const struct json_value *value, const char *path)
{
        const struct json_value *flag = json_tree_at(value, path);

        return flag != NULL && flag->type == JSON_BOOLEAN && !flag->flag;
}

static void
write_content(struct json_writer *json, const struct json_value *value)
{
        for (const struct json_value *each = value->first; each != NULL; each = each->next)
                json_tree_write(json, each);
}

void
json_tree_write(struct json_writer *json, const struct json_value *value)
{
        switch (value->type) {
        case JSON_NULL:
                json_null(json, value->name);
                break;
        case JSON_BOOLEAN:
                json_flag(json, value->name, value->flag);
                break;
        case JSON_NUMBER:
                json_literal(json, value->name, value->text);
                break;
        case JSON_STRING:
                json_member(json, value->name, value->text);
                break;
        case JSON_OBJECT:
                json_open_object(json, value->name);
                write_content(json, value);
                json_close_object(json);
                break;
        case JSON_ARRAY:
                json_open_array(json, value->name);
                write_content(json, value);
                json_close_array(json);
                break;
        }
}
