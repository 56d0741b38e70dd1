#include "kafka/statistics.h"

#include <string.h>

#include "base/json_reader.h"

#define MAX_DEPTH 16 /* librdkafka writes 7 */

/*
 * Depth of the parser within {"brokers": {"host:port/id": {"state": …}}, "topics": {"name": {"partitions":
 * {"0": {"fetchq_cnt": …}}}}, "eos": {"idemp_state": …}}
 */
enum { LEVEL_TOP = 1, LEVEL_BROKER = 3, LEVEL_PARTITION = 5 };

/* The member of the outermost object that is being parsed. */
enum section { SECTION_OTHER, SECTION_BROKERS, SECTION_TOPICS, SECTION_EOS };

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
        enum field field;
        char texts[N_FIELDS][STATISTICS_NAME_SIZE]; /* of the broker that is being parsed */
        int is_node;                                /* the broker has an id, so it belongs to the cluster */
        int is_id;                                  /* the id comes next */
        int is_id_state;                            /* the state of the producer id comes next */
};

static int
is(const char *name, const char *text, size_t len)
{
        return strlen(name) == len && memcmp(name, text, len) == 0;
}

static int
on_name(void *arg, const char *text, size_t len)
{
        struct parsing *parsing = arg;

        parsing->field = FIELD_OTHER;
        parsing->is_id = parsing->level == LEVEL_BROKER && is("nodeid", text, len);
        parsing->number = NULL;
        if (parsing->level == LEVEL_TOP)
                parsing->section = is("brokers", text, len)  ? SECTION_BROKERS
                                   : is("topics", text, len) ? SECTION_TOPICS
                                   : is("eos", text, len)    ? SECTION_EOS
                                                             : SECTION_OTHER;
        parsing->is_id_state = parsing->section == SECTION_EOS && is("idemp_state", text, len);
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
        return 0;
}

static void
keep_text(struct parsing *parsing, const char *text, size_t len)
{
        char *kept = parsing->texts[parsing->field];

        if (parsing->is_id_state)
                parsing->statistics->has_producer_id = is("Assigned", text, len);
        if (parsing->section != SECTION_BROKERS || parsing->level != LEVEL_BROKER ||
            parsing->field == FIELD_OTHER)
                return;
        len = len < STATISTICS_NAME_SIZE ? len : STATISTICS_NAME_SIZE - 1;
        memcpy(kept, text, len);
        kept[len] = '\0';
}

/* Add a number to its total. Ignore negative numbers and fractions. */
static void
add_number(struct parsing *parsing, const char *text, size_t len)
{
        uint64_t value = 0;

        if (parsing->is_id)
                parsing->is_node = *text != '-';
        if (parsing->number == NULL)
                return;
        for (size_t i = 0; i < len; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return;
                value = value * 10 + (uint64_t)(text[i] - '0');
        }
        *parsing->number += value;
}

static void
enter(struct parsing *parsing)
{
        parsing->level++;
        if (parsing->level == LEVEL_BROKER) {
                memset(parsing->texts, 0, sizeof(parsing->texts));
                parsing->is_node = 0;
        }
}

static int
on_value(void *arg, enum json_type type, const char *text, size_t len)
{
        if (type == JSON_OBJECT)
                enter(arg);
        else if (type == JSON_STRING)
                keep_text(arg, text, len);
        else if (type == JSON_NUMBER)
                add_number(arg, text, len);
        return 0;
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
        broker->rtt_us = 0;
}

static int
on_end(void *arg, enum json_type type)
{
        struct parsing *parsing = arg;

        if (type != JSON_OBJECT)
                return 0;
        if (parsing->section == SECTION_BROKERS && parsing->level == LEVEL_BROKER)
                add(parsing);
        parsing->level--;
        return 0;
}

int
statistics_read(struct statistics *statistics, const char *text, size_t len)
{
        static const struct json_events events = {on_value, on_name, on_end};
        struct parsing parsing = {.statistics = statistics};
        struct error error;

        memset(statistics, 0, sizeof(*statistics));
        if (json_read(text, len, MAX_DEPTH, &events, &parsing, &error) == 0)
                return 0;
        memset(statistics, 0, sizeof(*statistics));
        return -1;
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
                if (now->items[i].is_up)
                        now->items[i].rtt_us = rtt_of(before, now->items[i].name);
        }
}
