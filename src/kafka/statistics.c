#include "kafka/statistics.h"

#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/json_memory.h"

/*
 * Depth of the parser within {"brokers": {"host:port/id": {"state": …, "rtt": {"avg": …}}}, "topics":
 * {"name": {"partitions": {"0": {"fetchq_cnt": …}}}}}
 */
enum { LEVEL_TOP = 1, LEVEL_BROKERS, LEVEL_BROKER, LEVEL_WINDOW, LEVEL_PARTITION };

/* The member of the outermost object that is being parsed. */
enum section { SECTION_OTHER, SECTION_BROKERS, SECTION_TOPICS };

enum field { FIELD_OTHER, FIELD_NAME, FIELD_SOURCE, FIELD_STATE, N_FIELDS };

static const char *const field_names[N_FIELDS] = {
    [FIELD_OTHER] = "", [FIELD_NAME] = "name", [FIELD_SOURCE] = "source", [FIELD_STATE] = "state"};

/* The numbers to add up, and their totals. */
static const struct {
        enum section section;
        size_t level;
        const char *name;
        size_t offset; /* in struct statistics_totals */
} numbers[] = {
    {SECTION_OTHER, LEVEL_TOP, "msg_cnt", offsetof(struct statistics_totals, queued_records)},
    {SECTION_OTHER, LEVEL_TOP, "msg_size", offsetof(struct statistics_totals, queued_bytes)},
    {SECTION_BROKERS, LEVEL_BROKER, "tx", offsetof(struct statistics_totals, requests)},
    {SECTION_BROKERS, LEVEL_BROKER, "txerrs", offsetof(struct statistics_totals, errors)},
    {SECTION_BROKERS, LEVEL_BROKER, "rxerrs", offsetof(struct statistics_totals, errors)},
    {SECTION_BROKERS, LEVEL_BROKER, "req_timeouts", offsetof(struct statistics_totals, timeouts)},
    {SECTION_BROKERS, LEVEL_BROKER, "txretries", offsetof(struct statistics_totals, retries)},
    {SECTION_TOPICS, LEVEL_PARTITION, "fetchq_cnt", offsetof(struct statistics_totals, queued_records)},
    {SECTION_TOPICS, LEVEL_PARTITION, "fetchq_size", offsetof(struct statistics_totals, queued_bytes)},
};

struct parsing {
        struct statistics *statistics;
        size_t level;
        enum section section;
        uint64_t *number; /* total for the next number; NULL: ignore it */
        int is_rtt;       /* inside a broker's "rtt" */
        uint64_t rtt_us;
        enum field field;
        char texts[N_FIELDS][STATISTICS_NAME_SIZE]; /* of the broker that is being parsed */
        int is_node;                                /* the broker has an id, so it belongs to the cluster */
        int is_id;                                  /* the id comes next */
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
        parsing->number = NULL;
        if (parsing->level == LEVEL_TOP)
                parsing->section = is("brokers", text, len)  ? SECTION_BROKERS
                                   : is("topics", text, len) ? SECTION_TOPICS
                                                             : SECTION_OTHER;
        if (parsing->level == LEVEL_BROKER)
                parsing->is_rtt = is("rtt", text, len);
        if (parsing->level == LEVEL_WINDOW && parsing->is_rtt && is("avg", text, len))
                parsing->number = &parsing->rtt_us;
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
                if (numbers[i].level == parsing->level && numbers[i].section == parsing->section &&
                    is(numbers[i].name, text, len))
                        parsing->number =
                            (uint64_t *)((char *)&parsing->statistics->totals + numbers[i].offset);
        }
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

        if (parsing->section != SECTION_BROKERS || parsing->level != LEVEL_BROKER ||
            parsing->field == FIELD_OTHER)
                return 1;
        len = len < STATISTICS_NAME_SIZE ? len : STATISTICS_NAME_SIZE - 1;
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
        if (parsing->number != NULL && value > 0)
                *parsing->number += (uint64_t)value;
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
                parsing->rtt_us = 0;
                parsing->is_rtt = 0;
        }
        return 1;
}

/*
 * librdkafka also lists its own connections as brokers: one to the group's coordinator, and one without an
 * address.
 */
static void
add(struct parsing *parsing)
{
        const char *source = parsing->texts[FIELD_SOURCE], *state = parsing->texts[FIELD_STATE];
        struct brokers *brokers = &parsing->statistics->brokers;
        int is_up = strcmp(state, "UP") == 0 || strcmp(state, "UPDATE") == 0;
        struct broker *broker;

        if (strcmp(source, "learned") != 0 && strcmp(source, "configured") != 0)
                return;
        if ((!parsing->is_node && is_up) || brokers->n == STATISTICS_BROKERS_MAX)
                return;
        broker = &brokers->items[brokers->n++];
        memcpy(broker->name, parsing->texts[FIELD_NAME], STATISTICS_NAME_SIZE);
        broker->is_up = is_up;
        broker->rtt_us = parsing->rtt_us;
}

static int
on_object_end(void *arg)
{
        struct parsing *parsing = arg;

        if (parsing->section == SECTION_BROKERS && parsing->level == LEVEL_BROKER)
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

/* Return 0, or -1 when the text is not JSON. */
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
statistics_read(struct statistics *statistics, const char *text, size_t len)
{
        struct parsing parsing = {.statistics = statistics};
        struct json_memory memory;
        int result;

        memset(statistics, 0, sizeof(*statistics));
        json_memory_init(&memory);
        if (setjmp(memory.failed) == 0)
                result = parse(&memory, &parsing, text, len);
        else
                result = -1;
        json_memory_clear(&memory);
        if (result != 0)
                memset(statistics, 0, sizeof(*statistics));
        return result;
}

static uint64_t
rtt_of(const struct brokers *brokers, const char *name)
{
        for (size_t i = 0; i < brokers->n; i++) {
                if (strcmp(brokers->items[i].name, name) == 0)
                        return brokers->items[i].rtt_us;
        }
        return 0;
}

void
statistics_keep_rtt(struct brokers *now, const struct brokers *before)
{
        for (size_t i = 0; i < now->n; i++) {
                if (now->items[i].rtt_us == 0)
                        now->items[i].rtt_us = rtt_of(before, now->items[i].name);
        }
}
