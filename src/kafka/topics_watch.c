#include "kafka/topics_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "kafka/topics_check.h"

struct watched_problem {
        const char *topic; /* of the configuration */
        char *text;
};

struct watched_problems {
        struct watched_problem *items;
        size_t n;
        int routes; /* else problems that concern only routers do not count */
};

struct topics_watch {
        const struct config *config;
        struct topic_need *needs;
        size_t n_needs;
        struct watched_problems problems; /* of the last look */
        int has_looked;
};

struct topics_watch *
topics_watch_new(const struct config *config)
{
        struct topics_watch *watch = mem_alloc(sizeof(*watch));

        watch->config = config;
        watch->needs = topics_needed(config, &watch->n_needs);
        if (!(config->roles & CONFIG_ROUTER))
                watch->n_needs = 1; /* a receiver uses only the first topic, `deliveries` */
        return watch;
}

static void
clear(struct watched_problems *problems)
{
        for (size_t i = 0; i < problems->n; i++)
                free(problems->items[i].text);
        free(problems->items);
        problems->items = NULL;
        problems->n = 0;
}

void
topics_watch_free(struct topics_watch *watch)
{
        if (watch == NULL)
                return;
        clear(&watch->problems);
        free(watch->needs);
        free(watch);
}

static void
on_finding(const struct topic_finding *finding, void *arg)
{
        struct watched_problems *problems = arg;

        if (finding->routing_only && !problems->routes)
                return;
        problems->items = mem_resize(problems->items, problems->n + 1, sizeof(*problems->items));
        problems->items[problems->n++] = (struct watched_problem){finding->topic, mem_strdup(finding->text)};
}

static int
has(const struct watched_problems *problems, const struct watched_problem *problem)
{
        for (size_t i = 0; i < problems->n; i++) {
                if (strcmp(problems->items[i].topic, problem->topic) == 0 &&
                    strcmp(problems->items[i].text, problem->text) == 0)
                        return 1;
        }
        return 0;
}

static void
log_changes(const struct watched_problems *before, const struct watched_problems *now)
{
        char quoted[LOG_QUOTED_SIZE];

        for (size_t i = 0; i < now->n; i++) {
                if (!has(before, &now->items[i]))
                        log_warning("topic is misconfigured topic=%s reason=%s", now->items[i].topic,
                                    log_quote(now->items[i].text, quoted));
        }
        for (size_t i = 0; i < before->n; i++) {
                if (!has(now, &before->items[i]))
                        log_notice("topic is no longer misconfigured topic=%s reason=%s",
                                   before->items[i].topic, log_quote(before->items[i].text, quoted));
        }
}

/* Return the number of topics with problems, which are in the order of the topics. */
static int
count_topics(const struct watched_problems *problems)
{
        int n = 0;

        for (size_t i = 0; i < problems->n; i++)
                n += i == 0 || strcmp(problems->items[i].topic, problems->items[i - 1].topic) != 0;
        return n;
}

int
topics_watch_look(struct topics_watch *watch, rd_kafka_t *client, int timeout_ms)
{
        struct topic_state *states = mem_alloc(watch->n_needs * sizeof(*states));
        struct watched_problems found = {.routes = (watch->config->roles & CONFIG_ROUTER) != 0};
        struct error error;
        int result = topics_describe(client, watch->needs, watch->n_needs, states, timeout_ms, &error);

        if (result == 0) {
                for (size_t i = 0; i < watch->n_needs; i++) {
                        if (!states[i].exists || states[i].settings_known) /* others cannot be compared */
                                topics_check(watch->config, &watch->needs[i], &states[i], on_finding, &found);
                }
                if (watch->has_looked)
                        log_changes(&watch->problems, &found);
                clear(&watch->problems);
                watch->problems = found;
                watch->has_looked = 1;
                result = count_topics(&found);
        }
        free(states);
        return result;
}
