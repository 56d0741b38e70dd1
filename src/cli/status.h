#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"

/* What `doctor` asks of /status. New code uses json_tree_number() and its neighbours instead. */

static inline double
status_number(const struct json_value *object, const char *name)
{
        return json_tree_value(json_tree_get(object, name));
}

static inline double
status_sum(const struct json_value *object)
{
        return json_tree_sum(object);
}

static inline int
status_flag(const struct json_value *object, const char *name)
{
        const struct json_value *member = json_tree_get(object, name);

        return member != NULL && member->flag;
}

static inline int
status_is_number(const struct json_value *object, const char *name, intmax_t number)
{
        const struct json_value *value = json_tree_get(object, name);
        char literal[32];

        (void)snprintf(literal, sizeof(literal), "%" PRIdMAX, number);
        return value != NULL && value->type == JSON_NUMBER && strcmp(value->text, literal) == 0;
}

#endif
