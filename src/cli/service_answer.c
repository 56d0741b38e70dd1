#include "cli/service_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"
#include "base/mem.h"

static char *
copy_text(const struct json_value *object, const char *name)
{
        const char *text = json_tree_text(object, name);

        return text == NULL ? NULL : mem_strdup(text);
}

static void
read_violations(const struct json_value *list, struct service_error *error)
{
        const struct json_value *each;

        if (list == NULL || list->type != JSON_ARRAY || list->n == 0)
                return;
        error->violations = mem_alloc(list->n * sizeof(*error->violations));
        for (each = list->first; each != NULL; each = each->next) {
                struct service_violation *violation = &error->violations[error->n_violations];

                violation->field = copy_text(each, "field");
                violation->message = copy_text(each, "message");
                error->n_violations += violation->field != NULL || violation->message != NULL;
        }
}

void
service_error_read(const char *body, size_t len, struct service_error *error)
{
        struct error reason;
        struct json_value *root = json_tree_parse(body, len, &reason);
        const struct json_value *object = json_tree_get(root, "error");

        memset(error, 0, sizeof(*error));
        error->code = copy_text(object, "code");
        error->message = copy_text(object, "message");
        error->request_id = copy_text(object, "requestId");
        read_violations(json_tree_get(object, "violations"), error);
        json_tree_free(root);
}

void
service_error_clear(struct service_error *error)
{
        for (size_t i = 0; i < error->n_violations; i++) {
                free(error->violations[i].field);
                free(error->violations[i].message);
        }
        free(error->violations);
        free(error->code);
        free(error->message);
        free(error->request_id);
}

static void
clear_view(struct subscription_view *view)
{
        free(view->id);
        free(view->url);
        free(view->created);
        for (size_t i = 0; i < view->n_events; i++)
                free(view->events[i]);
        free(view->events);
}

void
subscription_views_clear(struct subscription_views *views)
{
        for (size_t i = 0; i < views->n; i++)
                clear_view(&views->items[i]);
        free(views->items);
}

/* Return an id: a string or the literal of a number, or NULL. */
static char *
copy_id(const struct json_value *object)
{
        const struct json_value *id = json_tree_get(object, "id");

        if (id == NULL || (id->type != JSON_STRING && id->type != JSON_NUMBER) || id->text[0] == '\0')
                return NULL;
        return mem_strdup(id->text);
}

static void
read_events(const struct json_value *list, struct subscription_view *view)
{
        const struct json_value *each;

        if (list == NULL || list->type != JSON_ARRAY)
                return;
        view->shows_events = 1;
        if (list->n == 0)
                return;
        view->events = mem_alloc(list->n * sizeof(*view->events));
        for (each = list->first; each != NULL; each = each->next) {
                if (each->type == JSON_STRING)
                        view->events[view->n_events++] = mem_strdup(each->text);
        }
}

static void
read_view(const struct json_value *object, struct subscription_view *view)
{
        view->id = copy_id(object);
        view->url = copy_text(object, "url");
        view->created = copy_text(object, "createdAt");
        read_events(json_tree_get(object, "events"), view);
}

/* Return the first of the members that has the type, or NULL. */
static const struct json_value *
find_member(const struct json_value *object, const char *const *names, enum json_type type)
{
        for (; *names != NULL; names++) {
                const struct json_value *member = json_tree_get(object, *names);

                if (member != NULL && member->type == type)
                        return member;
        }
        return NULL;
}

static int
read_list(const struct json_value *root, struct subscription_views *views, struct error *error)
{
        static const char *const names[] = {"webhooks", "data", "items", "subscriptions", NULL};
        const struct json_value *list =
            root->type == JSON_ARRAY ? root : find_member(root, names, JSON_ARRAY);

        if (list == NULL)
                return error_set(error, "there is no list of webhooks in it");
        views->items = mem_alloc((list->n + 1) * sizeof(*views->items));
        for (const struct json_value *each = list->first; each != NULL; each = each->next) {
                struct subscription_view *view = &views->items[views->n++];

                read_view(each, view);
                if (view->id == NULL || view->url == NULL)
                        return error_set(error, "webhook %zu in it has no %s", views->n,
                                         view->id == NULL ? "id" : "url");
        }
        return 0;
}

int
service_answer_list(const char *body, size_t len, struct subscription_views *views, struct error *error)
{
        struct json_value *root = json_tree_parse(body, len, error);
        int result;

        memset(views, 0, sizeof(*views));
        if (root == NULL)
                return -1;
        result = read_list(root, views, error);
        json_tree_free(root);
        return result;
}

void
service_answer_one(const char *body, size_t len, struct subscription_views *views)
{
        static const char *const names[] = {"webhook", "data", "subscription", NULL};
        struct error reason;
        struct json_value *root = json_tree_parse(body, len, &reason);
        const struct json_value *object =
            json_tree_get(root, "id") != NULL ? root : find_member(root, names, JSON_OBJECT);

        memset(views, 0, sizeof(*views));
        views->items = mem_alloc(sizeof(*views->items));
        read_view(object, &views->items[0]);
        if (views->items[0].id != NULL)
                views->n = 1;
        else
                clear_view(&views->items[0]);
        json_tree_free(root);
}
