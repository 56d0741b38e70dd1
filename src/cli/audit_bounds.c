#include "cli/audit_bounds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/dedup.h"

int
audit_bounds_ask(struct offsets *offsets, struct range *ranges, size_t n, struct error *error)
{
        for (size_t i = 0; i < n; i++) {
                if (offsets_bounds(offsets, ranges[i].topic, ranges[i].partition, &ranges[i].from,
                                   &ranges[i].to, AUDIT_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        return 0;
}

/* See range_kept_since(). Returns 0, or an exit status after saying why. */
static int
read_first(const struct audit_plan *plan, const struct range *ranges, size_t n, int64_t *first_ms)
{
        struct error error;
        enum range_result result =
            range_kept_since(plan->config, plan->bootstrap, ranges, n, first_ms, &error);

        return result == RANGE_DONE ? 0 : audit_plan_failed(result, &error);
}

static int
is_time(int64_t ms)
{
        return ms != AUDIT_FROM_BEGINNING && ms != AUDIT_NEVER;
}

int
audit_bounds_judge(struct audit_plan *plan)
{
        int status = read_first(plan, plan->deliveries, plan->n_deliveries, plan->from_ms);

        if (status == 0)
                status = read_first(plan, plan->published, plan->n_published, plan->kept_ms);
        if (status != 0)
                return status;
        for (size_t p = 0; p < plan->n_deliveries; p++) {
                /* The first copy of a record may have been among those deleted. */
                if (is_time(plan->from_ms[p]))
                        plan->from_ms[p] =
                            dedup_trusted_from(plan->config->dedup_window_ms, plan->from_ms[p]);
                if (plan->from_ms[p] < plan->since_ms)
                        plan->from_ms[p] = plan->since_ms;
        }
        for (size_t i = 0; i < plan->n_published; i++) {
                if (is_time(plan->kept_ms[i]))
                        plan->kept_ms[i] += AUDIT_CLOCK_SKEW_MS;
        }
        return 0;
}

int
audit_bounds_narrow(struct audit_plan *plan, struct offsets *offsets, struct error *error)
{
        int64_t earliest = AUDIT_NEVER;

        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (plan->from_ms[p] < earliest)
                        earliest = plan->from_ms[p];
                if (plan->since_ms != AUDIT_FROM_BEGINNING &&
                    offsets_begin_at(offsets, &plan->deliveries[p],
                                     dedup_restore_start(plan->config->dedup_window_ms, plan->since_ms),
                                     AUDIT_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        /* What is older is not held against the deliveries: audit_plan_reaches(). */
        for (size_t i = 0; i < plan->n_published && is_time(earliest); i++) {
                if (offsets_begin_at(offsets, &plan->published[i], earliest - AUDIT_CLOCK_SKEW_MS,
                                     AUDIT_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        return 0;
}
