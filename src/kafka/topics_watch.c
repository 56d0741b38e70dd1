#include "kafka/topics_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "kafka/topics_check.h"

struct topics_watch {
        const struct config *config;
        struct topic_need *needs;
        size_t n_needs;
        struct findings problems; /* of the last look */
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

void
topics_watch_free(struct topics_watch *watch)
{
        if (watch == NULL)
                return;
        findings_clear(&watch->problems);
        free(watch->needs);
        free(watch);
}

static int
has(const struct findings *problems, const struct finding *problem)
{
        for (size_t i = 0; i < problems->n; i++) {
                if (strcmp(problems->items[i].subject, problem->subject) == 0 &&
                    strcmp(problems->items[i].text, problem->text) == 0)
                        return 1;
        }
        return 0;
}

static void
log_changes(const struct findings *before, const struct findings *now)
{
        char quoted[LOG_QUOTED_SIZE];

        for (size_t i = 0; i < now->n; i++) {
                if (!has(before, &now->items[i]))
                        topics_check_log(&now->items[i]);
        }
        for (size_t i = 0; i < before->n; i++) {
                if (!has(now, &before->items[i]))
                        log_notice("topic is no longer misconfigured topic=%s reason=%s",
                                   before->items[i].subject, log_quote(before->items[i].text, quoted));
        }
}

/* Return the number of topics with problems, which are in the order of the topics. */
static int
count_topics(const struct findings *problems)
{
        int n = 0;

        for (size_t i = 0; i < problems->n; i++)
                n += i == 0 || strcmp(problems->items[i].subject, problems->items[i - 1].subject) != 0;
        return n;
}

int
topics_watch_look(struct topics_watch *watch, rd_kafka_t *client, int timeout_ms)
{
        struct topic_state *states = mem_alloc(watch->n_needs * sizeof(*states));
        int is_routed = (watch->config->roles & CONFIG_ROUTER) != 0;
        struct findings found = {0};
        struct error error;
        int result = topics_describe(client, watch->needs, watch->n_needs, states, timeout_ms, &error);

        if (result == 0) {
                for (size_t i = 0; i < watch->n_needs; i++) {
                        if (!states[i].exists || states[i].settings_known) /* others cannot be compared */
                                topics_check(watch->config, &watch->needs[i], &states[i], is_routed, &found,
                                             NULL);
                }
                if (watch->has_looked)
                        log_changes(&watch->problems, &found);
                findings_clear(&watch->problems);
                watch->problems = found;
                watch->has_looked = 1;
                result = count_topics(&found);
        }
        free(states);
        return result;
}
