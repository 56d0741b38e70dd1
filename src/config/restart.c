#include "config/restart.h"

#include <string.h>

#include "base/mem.h"
#include "config/options.h"

/*
 * Return the n-th value of an option in the file as it is written there, its default if there is none, or
 * NULL.
 */
static const char *
nth_value(const struct config *config, const struct option_row *option, size_t n)
{
        size_t found = 0;

        for (size_t i = 0; i < config->ini.n; i++) {
                const struct ini_entry *entry = &config->ini.entries[i];

                if (entry->name != NULL && strcmp(entry->section, option->section) == 0 &&
                    strcmp(entry->name, option->name) == 0 && found++ == n)
                        return entry->value;
        }
        return found == 0 && n == 0 ? option->fallback : NULL;
}

static int
is_same(const struct option_row *option, const struct config *now, const struct config *then)
{
        const char *a, *b;
        size_t n = 0;

        do {
                a = nth_value(now, option, n);
                b = nth_value(then, option, n);
                n++;
        } while (a != NULL && b != NULL && strcmp(a, b) == 0);
        return a == b; /* NULL both: all were the same */
}

/* A reload applies other TLS files, but cannot turn TLS on or off: the sockets already speak it, or not. */
static int
takes_restart(const struct option_row *option, const struct config *now, const struct config *then)
{
        if (option->type == OPTION_FILE && strcmp(option->section, "receiver") == 0)
                return (now->certificate == NULL) != (then->certificate == NULL);
        return (option->flags & OPTION_RESTART) != 0;
}

static int
has_property(const struct config *config, const struct config_property *property)
{
        const char *value = config_property(config, property->name);

        return value != NULL && strcmp(value, property->value) == 0;
}

/* By values, in any order: a password may be in a file, which the text only names. */
static int
is_same_kafka(const struct config *now, const struct config *then)
{
        if (now->embedded != then->embedded || now->n_kafka != then->n_kafka)
                return 0;
        for (size_t i = 0; i < now->n_kafka; i++) {
                if (!has_property(then, &now->kafka[i]))
                        return 0;
        }
        return 1;
}

void
restart_needed(const struct config *now, const struct config *then, restart_visit *visit, void *arg)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                if (takes_restart(option, now, then) && !is_same(option, now, then))
                        visit(option->section, option->name, arg);
        }
        if (!is_same_kafka(now, then))
                visit("kafka", NULL, arg);
}

int
restart_moves_deliveries(const struct config *now, const struct config *then)
{
        return strcmp(now->deliveries_topic, then->deliveries_topic) != 0 ||
               strcmp(config_brokers(now), config_brokers(then)) != 0;
}

void
restart_keep_topics(struct config *next, const struct config *now)
{
        if (strcmp(next->topics_prefix, now->topics_prefix) != 0)
                config_set_topics(next, now->topics_prefix);
}
