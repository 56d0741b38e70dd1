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

static int
is_time(int64_t ms)
{
        return ms != AUDIT_FROM_BEGINNING && ms != AUDIT_NEVER;
}

/*
 * Find out from when on the partitions of a topic have all that was written to them. Where retention has deleted nothing, that is
 * from the beginning; but when it has deleted something in another partition of the topic, this one may have been added later, and
 * what would be in it today may have been in that one: then it is from its first record on. Returns 0, or an exit status after
 * saying why.
 */
static int
find_kept(const struct audit_plan *plan, const struct range *ranges, size_t n, int64_t *kept_ms)
{
        struct error error;
        enum range_result result;
        size_t n_whole = 0;

        for (size_t i = 0; i < n; i++) {
                kept_ms[i] = AUDIT_FROM_BEGINNING;
                n_whole += ranges[i].from == 0;
        }
        if (n_whole == n)
                return 0;
        result = range_first(plan->config, plan->bootstrap, ranges, n, kept_ms, &error);
        if (result != RANGE_DONE)
                return audit_plan_failed(result, &error);
        for (size_t i = 0; i < n; i++) {
                if (ranges[i].from == 0 && is_time(kept_ms[i]))
                        kept_ms[i] += 2 * plan->slack_ms;
        }
        return 0;
}

/*
 * From when on deliveries can be judged in a partition whose first record is from first_ms. The first copy of a delivery may have
 * been deleted; and a record that is compared may come of a delivery that is older by twice the slack: audit_plan_use().
 */
static int64_t
judged_from(const struct audit_plan *plan, int64_t first_ms)
{
        int64_t trusted_ms = dedup_trusted_from(plan->config->dedup_window_ms, first_ms);
        int64_t reached_ms = first_ms + 2 * plan->slack_ms;

        return trusted_ms > reached_ms ? trusted_ms : reached_ms;
}

int
audit_bounds_judge(struct audit_plan *plan)
{
        int status = find_kept(plan, plan->deliveries, plan->n_deliveries, plan->from_ms);

        for (size_t t = 0; t < plan->n_topics && status == 0; t++) {
                size_t first = plan->first_range[t];

                status = find_kept(plan, plan->published + first, plan->first_range[t + 1] - first,
                                   plan->kept_ms + first);
        }
        if (status != 0)
                return status;
        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (is_time(plan->from_ms[p]) && plan->deliveries[p].from > 0)
                        plan->from_ms[p] = judged_from(plan, plan->from_ms[p]);
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
                                     dedup_restore_start(plan->config->dedup_window_ms,
                                                         plan->since_ms - 2 * plan->slack_ms),
                                     AUDIT_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        /* What is older is not held against the deliveries: audit_plan_use(). */
        for (size_t i = 0; i < plan->n_published && is_time(earliest); i++) {
                if (offsets_begin_at(offsets, &plan->published[i], earliest - AUDIT_CLOCK_SKEW_MS,
                                     AUDIT_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        return 0;
}
