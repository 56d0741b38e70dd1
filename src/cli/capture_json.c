#include <string.h>

#include "base/json_tree.h"
#include "cli/capture.h"

/* A text; or a number, which is taken for its text, for a timestamp may be one. */
static const char *
text_of(const struct json_value *value)
{
        return value != NULL && (value->type == JSON_STRING || value->type == JSON_NUMBER) ? value->text
                                                                                           : NULL;
}

static void
add(struct capture *capture, const char *name, const char *value, unsigned request)
{
        capture_add(capture, name, strlen(name), value, strlen(value), request);
}

/* An object with the members name, or key, and value. Returns whether it is one. */
static int
add_pair(struct capture *capture, const struct json_value *object, unsigned request)
{
        const char *name = text_of(json_tree_get(object, "name")),
                   *value = text_of(json_tree_get(object, "value"));

        if (name == NULL)
                name = text_of(json_tree_get(object, "key"));
        if (name == NULL || value == NULL)
                return 0;
        add(capture, name, value, request);
        return 1;
}

/* Add the headers in an object or array. Those that stand together there are one request's. */
static void
visit(struct capture *capture, const struct json_value *container, unsigned *n_requests)
{
        unsigned request = ++*n_requests;

        for (const struct json_value *value = container->first; value != NULL; value = value->next) {
                if (value->name != NULL && text_of(value) != NULL)
                        add(capture, value->name, text_of(value), request);
                if (value->name != NULL && value->type == JSON_ARRAY) {
                        for (const struct json_value *each = value->first; each != NULL; each = each->next) {
                                if (text_of(each) != NULL)
                                        add(capture, value->name, text_of(each), request);
                        }
                }
                if (value->type == JSON_OBJECT && add_pair(capture, value, request))
                        continue;
                if (value->type == JSON_OBJECT || value->type == JSON_ARRAY)
                        visit(capture, value, n_requests);
        }
}

int
capture_parse_json(const char *text, size_t len, struct capture *capture, struct error *error)
{
        struct json_value *root = json_tree_parse(text, len, error);
        unsigned n_requests = 0;

        if (root == NULL)
                return -1;
        visit(capture, root, &n_requests);
        json_tree_free(root);
        return 0;
}
