#include "model/documented_field.h"

#include "base/clock.h"
#include "base/compiler.h"

static const char a_string[] = "a string";
static const char a_boolean[] = "true or false";
static const char an_object[] = "an object";
static const char a_time[] = "an ISO 8601 UTC timestamp";

static const struct documented_field fields[] = {
    {"clearanceStatus", {"clearanceStatus"}, 1, a_string},
    {"terminal", {"terminal"}, 1, a_boolean},
    {"rejectedAt", {"rejectedAt"}, 1, a_time},
    {"error", {"error"}, 1, an_object},
    {"error.source", {"error", "source"}, 2, a_string},
    {"error.code", {"error", "code"}, 2, a_string},
    {"error.message", {"error", "message"}, 2, a_string},
    {"error.detail", {"error", "detail"}, 2, a_string},
    {"data.clearanceStatus", {"data", "clearanceStatus"}, 2, a_string},
    {"data.terminal", {"data", "terminal"}, 2, a_boolean},
    {"data.rejectedAt", {"data", "rejectedAt"}, 2, a_time},
    {"data.error", {"data", "error"}, 2, an_object},
    {"data.error.source", {"data", "error", "source"}, 3, a_string},
    {"data.error.code", {"data", "error", "code"}, 3, a_string},
    {"data.error.message", {"data", "error", "message"}, 3, a_string},
    {"data.error.detail", {"data", "error", "detail"}, 3, a_string},
};

size_t
documented_field_count(void)
{
        return ARRAY_LEN(fields);
}

const struct documented_field *
documented_field_at(size_t index)
{
        return &fields[index];
}

int
documented_field_accepts(size_t index, enum json_type type, struct span text)
{
        const char *must_be = fields[index].must_be;

        if (type == JSON_NULL)
                return 1;
        if (must_be == a_boolean)
                return type == JSON_BOOLEAN;
        if (must_be == an_object)
                return type == JSON_OBJECT;
        if (must_be == a_time)
                return type == JSON_STRING && clock_is_utc_timestamp(text.data, text.len);
        return type == JSON_STRING;
}
