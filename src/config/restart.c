#include "config/restart.h"

#include <string.h>

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
is_same_proxies(const struct config *now, const struct config *then)
{
        size_t n = now->n_trusted_proxies;

        return now->trusts_unix_sockets == then->trusts_unix_sockets && n == then->n_trusted_proxies &&
               (n == 0 ||
                memcmp(now->trusted_proxies, then->trusted_proxies, n * sizeof(struct network)) == 0);
}

static int
is_same_admin(const struct config *now, const struct config *then)
{
        return is_same_text(now->admin == NULL ? NULL : now->admin->text,
                            then->admin == NULL ? NULL : then->admin->text);
}

static int
is_same(const struct option_row *option, const struct config *now, const struct config *then)
{
        const void *a = (const char *)now + option->offset, *b = (const char *)then + option->offset;

        switch (option->type) {
        case OPTION_NUMBER:
        case OPTION_SIZE:
        case OPTION_DURATION:
                return *(const uint64_t *)a == *(const uint64_t *)b;
        case OPTION_ROLES:
                return *(const unsigned *)a == *(const unsigned *)b;
        case OPTION_NAME:
                return is_same_text(*(char *const *)a, *(char *const *)b);
        case OPTION_FILE: /* of TLS: what stands in them is taken over, but not whether there are any */
                return (now->certificate == NULL) == (then->certificate == NULL) ||
                       is_same_text(*(char *const *)a, *(char *const *)b);
        case OPTION_PROXY:
                return is_same_proxies(now, then);
        case OPTION_LISTEN:
                return is_same_listen(now, then);
        case OPTION_ADMIN:
                return is_same_admin(now, then);
        case OPTION_SWITCH: /* these are of a source, or the service's */
        case OPTION_PATH:
        case OPTION_HEADER:
        case OPTION_SECRET:
        case OPTION_SECRET_FILE:
        case OPTION_WEBHOOK_ID:
        case OPTION_POINTER:
        case OPTION_KEY:
        case OPTION_URL:
        case OPTION_API_KEY:
        case OPTION_PRIVATE_FILE:
                return 1;
        }
        return 1;
}

static int
is_same_topics(const struct topic_table *now, const struct topic_table *then)
{
        if (topic_table_size(now) != topic_table_size(then))
                return 0;
        for (size_t i = 0; i < topic_table_size(now); i++) {
                const struct topic_rule *a = topic_table_rule(now, i), *b = topic_table_rule(then, i);

                if (strcmp(a->pattern, b->pattern) != 0 || strcmp(a->topic, b->topic) != 0)
                        return 0;
        }
        return 1;
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

void
restart_needed(const struct config *now, const struct config *then, restart_visit *visit, void *arg)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                if (strcmp(option->section, "source") != 0 && strcmp(option->section, "service") != 0 &&
                    !is_same(option, now, then))
                        visit(option->section, option->name, arg);
        }
        if (is_same_text(now->topics_prefix, then->topics_prefix) &&
            !is_same_topics(now->topics, then->topics))
                visit("events", NULL, arg);
        if (!is_same_kafka(now, then))
                visit("kafka", NULL, arg);
}
