#include "kafka/topics_new.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/topics_check.h"

#define TIMEOUT_MS 2000
#define LOOKS 5 /* a topic that was made a moment ago may not be known to every broker yet */
#define PAUSE_MS 100
#define DEADLINE_MS 10000

struct findings {
        int tells; /* warnings */
        size_t n_fatal;
        struct error *error; /* the first of these */
};

static void
on_finding(const struct topic_finding *finding, void *arg)
{
        struct findings *findings = arg;
        char quoted[LOG_QUOTED_SIZE];

        if (finding->fatal && findings->n_fatal++ == 0)
                (void)error_set(findings->error, "topic %s: %s", finding->topic, finding->text);
        if (!finding->fatal && findings->tells)
                log_warning("topic is not as it should be topic=%s reason=%s", finding->topic,
                            log_quote(finding->text, quoted));
}

/* Those of next's topics that are not among before's; an array of *n, to be freed. */
static struct topic_need *
find_new(const struct config *before, const struct config *next, size_t *n)
{
        size_t n_before, n_next;
        struct topic_need *known = topics_needed(before, &n_before), *needs = topics_needed(next, &n_next);

        *n = 0;
        for (size_t i = 0; i < n_next; i++) {
                size_t k = 0;

                while (k < n_before && strcmp(known[k].name, needs[i].name) != 0)
                        k++;
                if (k == n_before)
                        needs[(*n)++] = needs[i];
        }
        free(known);
        return needs;
}

/* Returns 1 when the topics are right, 0 when they are not, -1 when Kafka did not answer; but for 1, with the reason. */
static int
look(rd_kafka_t *client, const struct config *config, const struct topic_need *needs, size_t n,
     int timeout_ms, struct error *error)
{
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        struct findings findings = {0, 0, error};
        int result = topics_describe(client, needs, n, states, timeout_ms, error);

        for (size_t i = 0; i < n && result == 0; i++)
                topics_check(config, &needs[i], &states[i], on_finding, &findings);
        if (result == 0 && findings.n_fatal == 0) {
                findings.tells = 1;
                for (size_t i = 0; i < n; i++)
                        topics_check(config, &needs[i], &states[i], on_finding, &findings);
                result = 1;
        }
        free(states);
        return result;
}

int
topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                 const atomic_int *cancelled, struct error *error)
{
        int64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
        size_t n;
        struct topic_need *needs = find_new(before, next, &n);
        int result = n == 0;

        for (int looks = 0; looks < LOOKS && result == 0; looks++) {
                int64_t left_ms = end_ms - clock_monotonic_ms();

                if (looks > 0 && (left_ms <= 0 || atomic_load(cancelled)))
                        break;
                if (looks > 0)
                        clock_sleep_ms(PAUSE_MS);
                result =
                    look(client, next, needs, n, left_ms < TIMEOUT_MS ? (int)left_ms : TIMEOUT_MS, error);
        }
        if (result < 0)
                (void)error_prefix(error, "the topics that are new cannot be checked");
        free(needs);
        return result > 0 ? 0 : -1;
}
