#include "config/restart.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/options.h"

static int
is_same_text(const char *a, const char *b)
{
        return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static int
is_same_listen(const struct config *now, const struct config *then)
{
        if (now->n_listen != then->n_listen)
                return 0;
        for (size_t i = 0; i < now->n_listen; i++) {
                if (strcmp(now->listen[i].text, then->listen[i].text) != 0)
                        return 0;
        }
        return 1;
}

static int
is_same_admin(const struct config *now, const struct config *then)
{
        return is_same_text(now->admin == NULL ? NULL : now->admin->text,
                            then->admin == NULL ? NULL : then->admin->text);
}

/* Compare an option. Only types of options that need a restart are compared; the others count as equal. */
static int
is_same(const struct option_row *option, const struct config *now, const struct config *then)
{
        const void *a = (const char *)now + option->offset, *b = (const char *)then + option->offset;

        switch (option->type) {
        case OPTION_NUMBER:
        case OPTION_SIZE:
        case OPTION_DURATION:
                return *(const uint64_t *)a == *(const uint64_t *)b;
        case OPTION_SWITCH:
        case OPTION_REQUIRED:
                return *(const int *)a == *(const int *)b;
        case OPTION_ROLES:
                return *(const unsigned *)a == *(const unsigned *)b;
        case OPTION_NAME:
        case OPTION_FILE:
        case OPTION_DIRECTORY:
                return is_same_text(*(char *const *)a, *(char *const *)b);
        case OPTION_LISTEN:
                return is_same_listen(now, then);
        case OPTION_ADMIN:
                return is_same_admin(now, then);
        default:
                return 1;
        }
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
        for (size_t i = 0; i < config->n_kafka; i++) {
                if (strcmp(config->kafka[i].name, property->name) == 0)
                        return strcmp(config->kafka[i].value, property->value) == 0;
        }
        return 0;
}

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

static int
has_rule(const struct topic_table *table, const struct topic_rule *rule)
{
        for (size_t i = 0; i < topic_table_size(table); i++) {
                const struct topic_rule *other = topic_table_rule(table, i);

                if (strcmp(other->pattern, rule->pattern) == 0)
                        return strcmp(other->topic, rule->topic) == 0;
        }
        return 0;
}

static int
is_same_table(const struct topic_table *now, const struct topic_table *then)
{
        if (topic_table_size(now) != topic_table_size(then))
                return 0;
        for (size_t i = 0; i < topic_table_size(then); i++) {
                if (!has_rule(now, topic_table_rule(then, i)))
                        return 0;
        }
        return 1;
}

/* A reload applies another [events], but not together with another prefix (restart_keep_topics()). */
static int
holds_back_table(const struct config *now, const struct config *then)
{
        return then->has_events && strcmp(now->topics_prefix, then->topics_prefix) != 0 &&
               !is_same_table(now->topics, then->topics);
}

void
restart_needed(const struct config *now, const struct config *then, restart_visit *visit, void *arg)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                if (takes_restart(option, now, then) && !is_same(option, now, then))
                        visit(option->section, option->name, arg);
        }
        if (holds_back_table(now, then))
                visit("events", NULL, arg);
        if (!is_same_kafka(now, then))
                visit("kafka", NULL, arg);
}

int
restart_moves_deliveries(const struct config *now, const struct config *then)
{
        return strcmp(now->deliveries_topic, then->deliveries_topic) != 0 ||
               strcmp(config_brokers(now), config_brokers(then)) != 0;
}

static void
keep(char **text, const char *other)
{
        free(*text);
        *text = mem_strdup(other);
}

void
restart_keep_topics(struct config *next, const struct config *now)
{
        struct error error;

        if (strcmp(next->topics_prefix, now->topics_prefix) == 0)
                return;
        keep(&next->topics_prefix, now->topics_prefix);
        keep(&next->deliveries_topic, now->deliveries_topic);
        keep(&next->quarantine_topic, now->quarantine_topic);
        keep(&next->group, now->group);
        topic_table_free(next->topics);
        next->topics = topic_table_new();
        for (size_t i = 0; i < topic_table_size(now->topics); i++) {
                const struct topic_rule *rule = topic_table_rule(now->topics, i);

                (void)!topic_table_add(next->topics, rule->pattern, rule->topic,
                                       &error); /* it was accepted before */
        }
}
