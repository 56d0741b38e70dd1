#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/doctor_kafka.h"
#include "cli/kafka_access.h"

/*
 * Transactions that somebody has left open in `deliveries`: routers do not see what was appended after the
 * first record of one. Those of `quarantine release` are short.
 */

/* Return ranges of the same partitions up to where routers see them; NULL with the reason. */
static struct range *
list_stable(struct offsets *offsets, const struct range *ranges, size_t n, struct error *error)
{
        struct range *stable = mem_alloc(n * sizeof(*stable));

        memcpy(stable, ranges, n * sizeof(*stable));
        if (offsets_stable_bounds(offsets, stable, n, KAFKA_ACCESS_TIMEOUT_MS, error) == 0)
                return stable;
        free(stable);
        return NULL;
}

/* List what an open transaction hides now in each partition; an empty range where there is none. */
static struct range *
list_open(struct offsets *offsets, const char *topic, size_t n, struct error *error)
{
        struct range *open = mem_alloc(n * sizeof(*open)), *stable = NULL;

        for (size_t i = 0; i < n; i++)
                open[i] = (struct range){.topic = topic, .partition = (int32_t)i};
        /* In this order: what is appended in between must not look hidden. */
        if (offsets_bounds(offsets, open, n, KAFKA_ACCESS_TIMEOUT_MS, error) == 0)
                stable = list_stable(offsets, open, n, error);
        if (stable == NULL) {
                free(open);
                return NULL;
        }
        for (size_t i = 0; i < n; i++)
                open[i].from = stable[i].to;
        free(stable);
        return open;
}

int
doctor_transactions_look(struct offsets *offsets, const char *topic, size_t n, struct range **open,
                         struct error *error)
{
        struct range *stable;
        int n_open = 0;

        if (*open == NULL)
                *open = list_open(offsets, topic, n, error);
        stable = *open == NULL ? NULL : list_stable(offsets, *open, n, error);
        if (stable == NULL)
                return -1;
        for (size_t i = 0; i < n; i++) {
                struct range *each = &(*open)[i];

                if (stable[i].to > each->from)
                        each->to = each->from;
                n_open += each->from < each->to;
        }
        free(stable);
        return n_open;
}

void
doctor_transactions_report(struct doctor *doctor, const struct range *open, size_t n)
{
        const char *broker = config_tool_broker(doctor->config);
        size_t i = 0, n_open = 0;

        while (open[i].from >= open[i].to)
                i++;
        for (size_t k = i; k < n; k++)
                n_open += open[k].from < open[k].to;
        doctor_fail(
            doctor, EX_UNAVAILABLE,
            "a transaction stays open in %zu of %zu partitions, and hides what follows it from routers: "
            "in %zu all from offset %" PRId64 " on",
            n_open, n, i, open[i].from);
        doctor_remedy(doctor,
                      "kafka-transactions.sh --bootstrap-server %s describe-producers --topic %s --partition "
                      "%zu shows its producer: stop that program; if it has ended already, "
                      "kafka-transactions.sh --bootstrap-server %s abort --topic %s --partition %zu "
                      "--start-offset %" PRId64,
                      broker, open[i].topic, i, broker, open[i].topic, i, open[i].from);
}
