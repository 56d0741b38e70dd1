#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/doctor_kafka.h"
#include "cli/kafka_access.h"

/*
 * Transactions that somebody has left open in `deliveries`: routers do not see what was appended after the
 * first record of one. Those of `quarantine release` are short.
 */

struct range *
doctor_transactions_list(struct offsets *offsets, const char *topic, size_t n, struct error *error)
{
        struct range *open = mem_alloc(n * sizeof(*open));
        int64_t low;

        for (size_t i = 0; i < n; i++) {
                struct range *each = &open[i];

                *each = (struct range){.topic = topic, .partition = (int32_t)i};
                /* In this order: what is appended in between must not look hidden. */
                if (offsets_bounds(offsets, topic, each->partition, &low, &each->to, KAFKA_ACCESS_TIMEOUT_MS,
                                   error) != 0 ||
                    offsets_stable_bounds(offsets, topic, each->partition, &low, &each->from,
                                          KAFKA_ACCESS_TIMEOUT_MS, error) != 0) {
                        free(open);
                        return NULL;
                }
        }
        return open;
}

int
doctor_transactions_look(struct offsets *offsets, struct range *open, size_t n, struct error *error)
{
        int n_open = 0;

        for (size_t i = 0; i < n; i++) {
                int64_t low, end;

                if (open[i].from >= open[i].to)
                        continue;
                if (offsets_stable_bounds(offsets, open[i].topic, open[i].partition, &low, &end,
                                          KAFKA_ACCESS_TIMEOUT_MS, error) != 0)
                        return -1;
                if (end > open[i].from)
                        open[i].to = open[i].from;
                else
                        n_open++;
        }
        return n_open;
}

void
doctor_transactions_report(struct doctor *doctor, const struct range *open, size_t n)
{
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
        doctor_remedy(
            doctor,
            "kafka-transactions.sh --bootstrap-server BROKER describe-producers --topic %s --partition "
            "%zu shows its producer: stop that program; if it has ended already, "
            "kafka-transactions.sh --bootstrap-server BROKER abort --topic %s --partition %zu "
            "--start-offset %" PRId64,
            open[i].topic, i, open[i].topic, i, open[i].from);
}
