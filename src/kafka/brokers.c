#include "kafka/brokers.h"

#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/json_memory.h"

/* How deep one is: {"brokers": {"host:port/id": {"state": …}}} */
enum { LEVEL_TOP = 1, LEVEL_BROKERS, LEVEL_BROKER };

enum field { FIELD_OTHER, FIELD_NAME, FIELD_SOURCE, FIELD_STATE, N_FIELDS };

static const char *const field_names[N_FIELDS] = {
    [FIELD_OTHER] = "", [FIELD_NAME] = "name", [FIELD_SOURCE] = "source", [FIELD_STATE] = "state"};

struct parsing {
        struct brokers *brokers;
        size_t level;
        int is_inside; /* of the member `brokers` */
        enum field field;
        char texts[N_FIELDS][BROKERS_NAME_SIZE]; /* of the broker that is read */
        int is_node;                             /* it has an id, that of a broker of the cluster */
        int is_id;                               /* the id comes next */
};

static int
is(const char *name, const unsigned char *text, size_t len)
{
        return strlen(name) == len && memcmp(name, text, len) == 0;
}

static int
on_name(void *arg, const unsigned char *text, size_t len)
{
        struct parsing *parsing = arg;

        parsing->field = FIELD_OTHER;
        parsing->is_id = parsing->level == LEVEL_BROKER && is("nodeid", text, len);
        if (parsing->level == LEVEL_TOP)
                parsing->is_inside = is("brokers", text, len);
        for (enum field f = FIELD_NAME; f < N_FIELDS && parsing->level == LEVEL_BROKER; f++) {
                if (is(field_names[f], text, len))
                        parsing->field = f;
        }
        return 1;
}

static int
on_string(void *arg, const unsigned char *text, size_t len)
{
        struct parsing *parsing = arg;
        char *kept = parsing->texts[parsing->field];

        if (!parsing->is_inside || parsing->level != LEVEL_BROKER || parsing->field == FIELD_OTHER)
                return 1;
        len = len < BROKERS_NAME_SIZE ? len : BROKERS_NAME_SIZE - 1;
        memcpy(kept, text, len);
        kept[len] = '\0';
        return 1;
}

static int
on_integer(void *arg, long long value)
{
        struct parsing *parsing = arg;

        if (parsing->is_id)
                parsing->is_node = value >= 0;
        return 1;
}

static int
on_object(void *arg)
{
        struct parsing *parsing = arg;

        parsing->level++;
        if (parsing->level == LEVEL_BROKER) {
                memset(parsing->texts, 0, sizeof(parsing->texts));
                parsing->is_node = 0;
        }
        return 1;
}

/* librdkafka also counts connections of its own as brokers: to the group's coordinator, and to nowhere. */
static void
add(struct parsing *parsing)
{
        const char *source = parsing->texts[FIELD_SOURCE], *state = parsing->texts[FIELD_STATE];
        struct brokers *brokers = parsing->brokers;
        int is_up = strcmp(state, "UP") == 0 || strcmp(state, "UPDATE") == 0;
        struct broker *broker;

        if (strcmp(source, "learned") != 0 && strcmp(source, "configured") != 0)
                return;
        if ((!parsing->is_node && is_up) || brokers->n == BROKERS_MAX)
                return;
        broker = &brokers->items[brokers->n++];
        memcpy(broker->name, parsing->texts[FIELD_NAME], BROKERS_NAME_SIZE);
        broker->is_up = is_up;
}

static int
on_object_end(void *arg)
{
        struct parsing *parsing = arg;

        if (parsing->is_inside && parsing->level == LEVEL_BROKER)
                add(parsing);
        parsing->level--;
        return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_integer = on_integer,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_name,
    .yajl_end_map = on_object_end,
};

/* Returns 0, or -1 when that is no JSON. */
static int
parse(struct json_memory *memory, struct parsing *parsing, const char *text, size_t len)
{
        yajl_handle yajl = yajl_alloc(&callbacks, &memory->functions, parsing);
        yajl_status status = yajl_parse(yajl, (const unsigned char *)text, len);

        if (status == yajl_status_ok)
                status = yajl_complete_parse(yajl);
        yajl_free(yajl);
        return status == yajl_status_ok ? 0 : -1;
}

int
brokers_read(struct brokers *brokers, const char *statistics, size_t len)
{
        struct parsing parsing = {.brokers = brokers};
        struct json_memory memory;
        int result;

        brokers->n = 0;
        json_memory_init(&memory);
        if (setjmp(memory.failed) == 0)
                result = parse(&memory, &parsing, statistics, len);
        else
                result = -1;
        json_memory_clear(&memory);
        if (result != 0)
                brokers->n = 0;
        return result;
}
