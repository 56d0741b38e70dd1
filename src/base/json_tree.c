#include "base/json_tree.h"

#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

struct builder {
        struct json_value *root;
        struct json_value *open; /* the object or array being filled */
        char *name;              /* of the next member */
        size_t depth;
        const char *fault;
};

static int
give_up(struct builder *builder, const char *fault)
{
        builder->fault = fault;
        return 0;
}

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
on_null(void *arg)
{
        (void)add(arg, JSON_NULL);
        return 1;
}

static int
on_boolean(void *arg, int flag)
{
        add(arg, JSON_BOOLEAN)->flag = flag;
        return 1;
}

static int
on_number(void *arg, const char *text, size_t len)
{
        add(arg, JSON_NUMBER)->text = mem_strndup(text, len);
        return 1;
}

static int
on_string(void *arg, const unsigned char *text, size_t len)
{
        if (memchr(text, '\0', len) != NULL)
                return give_up(arg, "a string contains a NUL character");
        add(arg, JSON_STRING)->text = mem_strndup((const char *)text, len);
        return 1;
}

static int
on_name(void *arg, const unsigned char *text, size_t len)
{
        struct builder *builder = arg;

        if (memchr(text, '\0', len) != NULL)
                return give_up(builder, "a name contains a NUL character");
        builder->name = mem_strndup((const char *)text, len);
        return 1;
}

static int
enter(struct builder *builder, enum json_type type)
{
        if (builder->depth == JSON_TREE_MAX_DEPTH)
                return give_up(builder, "the nesting is too deep");
        builder->depth++;
        builder->open = add(builder, type);
        return 1;
}

static int
leave(struct builder *builder)
{
        builder->depth--;
        builder->open = builder->open->parent;
        return 1;
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
on_object(void *arg)
{
        return enter(arg, JSON_OBJECT);
}

static int
on_object_end(void *arg)
{
        struct builder *builder = arg;

        if (has_name_twice(builder->open))
                return give_up(builder, "duplicate member");
        return leave(builder);
}

static int
on_array(void *arg)
{
        return enter(arg, JSON_ARRAY);
}

static int
on_array_end(void *arg)
{
        return leave(arg);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_name,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

struct json_value *
json_tree_parse(const char *text, size_t len, struct error *error)
{
        struct builder builder = {0};
        yajl_handle yajl;
        yajl_status status;
        size_t consumed;

        if (!text_is_utf8(text, len)) {
                (void)error_set(error, "not UTF-8");
                return NULL;
        }
        if (memchr(text, '\v', len) != NULL || memchr(text, '\f', len) != NULL) { /* white space to yajl */
                (void)error_set(error, "a control character that JSON does not allow");
                return NULL;
        }
        yajl = yajl_alloc(&callbacks, json_allocation(), &builder);
        /* Otherwise yajl ignores an unterminated string after the value. */
        (void)yajl_config(yajl, yajl_allow_trailing_garbage, 1);
        status = yajl_parse(yajl, (const unsigned char *)text, len);
        consumed = yajl_get_bytes_consumed(yajl);
        if (status == yajl_status_ok)
                status = yajl_complete_parse(yajl);
        yajl_free(yajl);
        if (status == yajl_status_ok && builder.root != NULL &&
            json_is_space(text + consumed, len - consumed))
                return builder.root;
        (void)error_set(error, "%s", builder.fault != NULL ? builder.fault : len == 0 ? "empty" : "not JSON");
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

static void
write_content(yajl_gen json, const struct json_value *value)
{
        for (const struct json_value *each = value->first; each != NULL; each = each->next) {
                if (each->name != NULL)
                        json_text(json, each->name);
                json_tree_write(json, each);
        }
}

void
json_tree_write(yajl_gen json, const struct json_value *value)
{
        switch (value->type) {
        case JSON_NULL:
                (void)yajl_gen_null(json);
                break;
        case JSON_BOOLEAN:
                (void)yajl_gen_bool(json, value->flag);
                break;
        case JSON_NUMBER:
                (void)yajl_gen_number(json, value->text, strlen(value->text));
                break;
        case JSON_STRING:
                json_text(json, value->text);
                break;
        case JSON_OBJECT:
                (void)yajl_gen_map_open(json);
                write_content(json, value);
                (void)yajl_gen_map_close(json);
                break;
        case JSON_ARRAY:
                (void)yajl_gen_array_open(json);
                write_content(json, value);
                (void)yajl_gen_array_close(json);
                break;
        }
}

const char *
json_type_name(enum json_type type)
{
        static const char *const names[] = {
            [JSON_NULL] = "null",       [JSON_BOOLEAN] = "true or false", [JSON_NUMBER] = "a number",
            [JSON_STRING] = "a string", [JSON_OBJECT] = "an object",      [JSON_ARRAY] = "an array"};

        return names[type];
}
