#include "model/topic_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The rules with a topic, in the order of adding, and all rules, sorted by pattern for lookup. */
struct topic_table {
        struct topic_rule **rules;
        struct topic_rule **sorted;
        size_t n;
        size_t n_sorted;
};

static const char *const documented_kinds[] = {
    "invoice.accepted", "invoice.rejected", "invoice.received",  "invoice.duplicate",
    "invoice.pending",  "invoice.amended",  "invoice.cancelled", "held_unmapped_decision",
};

/* The service does not document the names of the kinds in this family. */
#define DOCUMENTED_FAMILY "reporting_batch"

struct topic_table *
topic_table_new(void)
{
        return mem_alloc(sizeof(struct topic_table));
}

void
topic_table_free(struct topic_table *table)
{
        if (table == NULL)
                return;
        for (size_t i = 0; i < table->n_sorted; i++) {
                free(table->sorted[i]->pattern);
                free(table->sorted[i]->topic);
                free(table->sorted[i]);
        }
        free(table->rules);
        free(table->sorted);
        free(table);
}

int
topic_name_is_valid(const char *name)
{
        size_t len = strlen(name);

        if (len == 0 || len > 249 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return 0;
        return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

/* Compare a rule's pattern with the first len bytes at name. */
static int
compare(const char *pattern, const char *name, size_t len)
{
        int order = strncmp(pattern, name, len);

        return order != 0 ? order : pattern[len] != '\0';
}

/* Return the position of the name among the sorted rules, or where it belongs; *found says which. */
static size_t
search(const struct topic_table *table, const char *name, size_t len, int *found)
{
        size_t low = 0, high = table->n_sorted;

        *found = 0;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = compare(table->sorted[middle]->pattern, name, len);

                if (order == 0) {
                        *found = 1;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int
check_pattern(const char *pattern, struct error *error)
{
        const char *star = strchr(pattern, '*');

        if (*pattern == '\0')
                return error_set(error, "the event kind is missing");
        if (strlen(pattern) > 255)
                return error_set(error, "the event kind is longer than 255 bytes");
        if (strchr("\"'`", pattern[0]) != NULL)
                return error_set(error, "'%.64s': a kind is written without quotes", pattern);
        if (strchr(pattern, ',') != NULL)
                return error_set(error, "'%.64s': a kind has no comma; write one line for each kind",
                                 pattern);
        if (star != NULL && (star[1] != '\0' || star - pattern < 2 || star[-1] != '.'))
                return error_set(error,
                                 "'%.64s': a pattern is the first words of a kind and .*, such as invoice.*; "
                                 "there is none for all kinds",
                                 pattern);
        return 0;
}

/* Add a rule to those that are looked up, at its place. */
static struct topic_rule *
insert(struct topic_table *table, size_t place, const char *pattern)
{
        struct topic_rule *rule = mem_alloc(sizeof(*rule));

        rule->pattern = mem_strdup(pattern);
        table->sorted = mem_resize(table->sorted, table->n_sorted + 1, sizeof(struct topic_rule *));
        memmove(&table->sorted[place + 1], &table->sorted[place],
                (table->n_sorted - place) * sizeof(struct topic_rule *));
        table->sorted[place] = rule;
        table->n_sorted++;
        return rule;
}

int
topic_table_add(struct topic_table *table, const char *pattern, const char *topic, struct error *error)
{
        int has_topic = strcmp(topic, TOPIC_TABLE_NONE) != 0, found;
        struct topic_rule *rule;
        size_t place;

        if (check_pattern(pattern, error) != 0)
                return -1;
        if (!topic_name_is_valid(topic))
                return error_set(error, "'%.64s' is not a topic name: 1 to 249 of a-z A-Z 0-9 . _ -", topic);
        place = search(table, pattern, strlen(pattern), &found);
        if (found)
                return error_set(error, "'%.64s' already has a topic", pattern);
        rule = insert(table, place, pattern);
        if (!has_topic)
                return 0;
        rule->topic = mem_strdup(topic);
        rule->index = table->n;
        table->rules = mem_resize(table->rules, table->n + 1, sizeof(struct topic_rule *));
        table->rules[table->n++] = rule;
        return 0;
}

/* Return the rule whose pattern is the kind's first len bytes and a star, or NULL. */
static const struct topic_rule *
find_pattern(const struct topic_table *table, const char *kind, size_t len)
{
        char pattern[256];
        size_t place;
        int found;

        memcpy(pattern, kind, len);
        pattern[len] = '*';
        place = search(table, pattern, len + 1, &found);
        return found ? table->sorted[place] : NULL;
}

/* Return the rule that decides about a kind, or, for a pattern, the rule of that pattern; NULL: none. */
static const struct topic_rule *
find_rule(const struct topic_table *table, const char *kind, size_t len)
{
        const struct topic_rule *rule = NULL;
        size_t place;
        int found;

        place = search(table, kind, len, &found);
        if (found)
                return table->sorted[place];
        for (size_t dot = len; rule == NULL && dot > 1; dot--) {
                if (kind[dot - 1] == '.' && dot < len)
                        rule = find_pattern(table, kind, dot);
        }
        return rule;
}

/* A kind for which there is a rule already keeps it, also a pattern or one without a topic. */
static void
add_default(struct topic_table *table, const char *pattern, const char *prefix, const char *name)
{
        char *topic;
        struct error ignored; /* the patterns are valid, and the prefix has been checked */

        if (find_rule(table, pattern, strlen(pattern)) != NULL)
                return;
        topic = mem_printf("%s.%s", prefix, name);
        (void)!topic_table_add(table, pattern, topic, &ignored);
        free(topic);
}

void
topic_table_add_defaults(struct topic_table *table, const char *prefix)
{
        for (size_t i = 0; i < ARRAY_LEN(documented_kinds); i++)
                add_default(table, documented_kinds[i], prefix, documented_kinds[i]);
        add_default(table, DOCUMENTED_FAMILY ".*", prefix, DOCUMENTED_FAMILY);
}

const char *
topic_table_documented_name(const char *kind, size_t len)
{
        static const char family[] = DOCUMENTED_FAMILY ".";

        for (size_t i = 0; i < ARRAY_LEN(documented_kinds); i++) {
                if (strlen(documented_kinds[i]) == len && memcmp(documented_kinds[i], kind, len) == 0)
                        return documented_kinds[i];
        }
        return len > sizeof(family) - 1 && memcmp(family, kind, sizeof(family) - 1) == 0 ? DOCUMENTED_FAMILY
                                                                                         : NULL;
}

const struct topic_rule *
topic_table_find(const struct topic_table *table, const char *kind, size_t len)
{
        const struct topic_rule *rule;

        if (memchr(kind, '\0', len) != NULL || memchr(kind, '*', len) != NULL || len > 255)
                return NULL;
        rule = find_rule(table, kind, len);
        return rule == NULL || rule->topic == NULL ? NULL : rule;
}

size_t
topic_table_size(const struct topic_table *table)
{
        return table->n;
}

const struct topic_rule *
topic_table_rule(const struct topic_table *table, size_t index)
{
        return table->rules[index];
}
