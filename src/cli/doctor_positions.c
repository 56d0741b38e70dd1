#include "cli/doctor_kafka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/kafka_access.h"

/*
 * Whether the group's committed offsets fit the logs. A committed offset that is high enough proves nothing
 * when the log ends before it: a broker may have come back with an empty disk, or the offset is of another
 * cluster.
 */

int
doctor_positions_look(struct doctor_positions *positions, struct offsets *offsets, const char *topic,
                      size_t n, struct error *error)
{
        if (positions->logs == NULL) {
                positions->logs = mem_alloc(n * sizeof(*positions->logs));
                positions->committed = mem_alloc(n * sizeof(*positions->committed));
                positions->n = n;
                for (size_t p = 0; p < n; p++)
                        positions->logs[p] = (struct range){.topic = topic, .partition = (int32_t)p};
        }
        /* The ends are asked for later, so that no router can have gone beyond them in between. */
        if (offsets_committed_so_far(offsets, topic, (int32_t)n, positions->committed,
                                     KAFKA_ACCESS_TIMEOUT_MS, error) != 0)
                return -1;
        return offsets_bounds(offsets, positions->logs, n, KAFKA_ACCESS_TIMEOUT_MS, error);
}

void
doctor_positions_clear(struct doctor_positions *positions)
{
        free(positions->logs);
        free(positions->committed);
}

int
doctor_positions_fit(const struct doctor_positions *positions, size_t partition)
{
        const struct range *log = &positions->logs[partition];
        int64_t committed = positions->committed[partition];

        return committed < 0 ? log->from == 0 : committed <= log->to;
}

size_t
doctor_positions_misfit(const struct doctor_positions *positions)
{
        size_t p = 0;

        while (p < positions->n && doctor_positions_fit(positions, p))
                p++;
        return p;
}

void
doctor_positions_report(struct doctor *doctor, const struct doctor_positions *positions, size_t partition)
{
        const struct range *log = &positions->logs[partition];
        int64_t committed = positions->committed[partition];
        struct error how;
        size_t n_misfits = 0;
        char such[48] = "";

        for (size_t p = 0; p < positions->n; p++)
                n_misfits += !doctor_positions_fit(positions, p);
        if (n_misfits > 1)
                (void)snprintf(such, sizeof(such), ", one of %zu such partitions,", n_misfits);
        if (committed < 0) {
                offsets_explain_reset(doctor->config, log->partition, "--to-offset OFFSET", &how);
                doctor_fail(doctor, EX_UNAVAILABLE,
                            "partition %" PRId32 "%s begins at offset %" PRId64
                            " and the group has no committed offset in it, so that a router refuses to route "
                            "it",
                            log->partition, such, log->from);
                doctor_remedy(doctor, "%s; --to-earliest publishes all records in the log", how.text);
                return;
        }
        offsets_explain_reset(doctor->config, log->partition, "--to-earliest", &how);
        doctor_fail(doctor, EX_UNAVAILABLE,
                    "partition %" PRId32 "%s ends at offset %" PRId64 " but was routed up to %" PRId64
                    ", so that its deliveries are not published: was the topic deleted and recreated, the "
                    "log lost, or the offset copied from another cluster?",
                    log->partition, such, log->to, committed);
        doctor_remedy(doctor,
                      "see its cause by gatepost status on the machine of its router: truncated ends with "
                      "its next delivery; with beyond-end, %s; --to-earliest publishes all records in the "
                      "log, so use --to-offset OFFSET if some of them were published",
                      how.text);
}
