#include "cli/audit_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "cli/audit_scope.h"
#include "cli/command.h"

#define NAME_WIDTH 40

static const char *const fault_names[TALLY_N_FAULTS] = {
    [TALLY_LOST] = "lost", [TALLY_DUPLICATED] = "duplicated", [TALLY_UNEXPECTED] = "unexpected"};

/*
 * Return how many of the records read count as found. The others come from deliveries whose results may, but
 * need not have been published. So FOUND less EXPECTED is the fault, whatever a running router does.
 */
static uint64_t
count_found(const struct audit_counts *counts)
{
        return counts->n_required - counts->n_faults[TALLY_LOST] + counts->n_faults[TALLY_DUPLICATED] +
               counts->n_faults[TALLY_UNEXPECTED];
}

/* Return since when a topic is checked, "" when from its beginning. */
static const char *
format_since(const struct audit *audit, size_t topic, char text[CLOCK_RFC3339_SIZE])
{
        int64_t from_ms = audit_scope_begin(audit->plan, (uint32_t)topic);

        if (from_ms == AUDIT_FROM_BEGINNING)
                return "";
        if (from_ms == AUDIT_NEVER)
                return "never";
        return clock_format_ms(from_ms, text);
}

static void
print_counts(const char *name, const struct audit_counts *counts, const char *since)
{
        printf("%-*s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 "%s%s\n", NAME_WIDTH,
               name, counts->n_required, count_found(counts), counts->n_faults[TALLY_LOST],
               counts->n_faults[TALLY_DUPLICATED], counts->n_faults[TALLY_UNEXPECTED],
               *since == '\0' ? "" : "  ", since);
}

static void
print_examples(const struct audit *audit)
{
        uint64_t n_faults = 0, n_shown = 0;

        for (size_t f = 0; f < TALLY_N_FAULTS; f++)
                n_faults += audit->total.n_faults[f];
        for (size_t i = 0; i < audit->n_examples; i++) {
                const struct audit_example *example = &audit->examples[i];
                const struct tally_finding *finding = &example->finding;

                n_shown += finding->n;
                fprintf(stderr, "%s: %s, delivery-id %s, at %" PRId32 "/%" PRId64 " of %s",
                        fault_names[finding->fault], audit->plan->topics[finding->place.topic],
                        example->delivery_id, finding->place.partition, finding->place.offset,
                        audit_work_topic(audit, finding));
                if (finding->n > 1)
                        fprintf(stderr, ", %" PRIu64 " times", finding->n);
                fputc('\n', stderr);
        }
        if (n_faults > n_shown)
                fprintf(stderr, "and %" PRIu64 " more\n", n_faults - n_shown);
}

/* Print the partitions whose deliveries wait for a router that does not run. */
static void
print_waiting(const struct audit *audit)
{
        char since[CLOCK_RFC3339_SIZE];

        for (size_t p = 0; p < audit->plan->n_deliveries; p++) {
                const struct audit_partition *partition = &audit->partitions[p];

                if (!audit_work_waits(audit, p))
                        continue;
                fprintf(stderr,
                        "waiting: %" PRIu64
                        " deliveries in partition %zu that no router has %s, the oldest since %s\n",
                        partition->n_waiting, p,
                        audit->plan->committed[p] < 0 ? "committed an offset for" : "routed for 5 minutes",
                        clock_format_ms(partition->first_waiting_ms, since));
        }
}

static void
print_deleted(const struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;

        for (size_t p = 0; p < plan->n_deliveries; p++) {
                int64_t n = audit_plan_deleted(plan, p);

                if (n > 0)
                        fprintf(stderr,
                                "deleted before routing: up to %" PRId64
                                " deliveries of partition %zu, offsets %" PRId64 " to %" PRId64 "\n",
                                n, p, plan->begin[p] - n, plan->begin[p] - 1);
        }
}

static void
print_unchecked(uint64_t n, const char *what)
{
        if (n > 0)
                fprintf(stderr, "not checked: %" PRIu64 " %s\n", n, what);
}

/* Print what could not be checked. */
static void
print_limits(const struct audit *audit)
{
        const struct audit_partition *all = &audit->deliveries;

        print_deleted(audit);
        print_waiting(audit);
        if (all->n_checked == 0)
                (void)command_fail(
                    0, "nothing was checked: no delivery was routed, or too little of the log is left");
        print_unchecked(all->n_unjudged,
                        "deliveries, because their topic no longer reaches back far enough to judge them");
        print_unchecked(all->n_results_deleted,
                        "deliveries, because records of that time were deleted from the routers' topics");
        print_unchecked(audit->total.n_older,
                        "published records, because their deliveries are older than those compared");
}

/*
 * Records that are lost or unexpected may have been published by an earlier configuration. With --since,
 * audit_scope_use() leaves them out if the time is later than the change by the slack.
 */
static void
print_hint(const struct audit *audit)
{
        const uint64_t *n_faults = audit->total.n_faults;
        char wait[NUMBER_TEXT_SIZE];

        if (n_faults[TALLY_LOST] + n_faults[TALLY_UNEXPECTED] == 0)
                return;
        command_note_routers(audit->plan->config);
        (void)command_fail(0,
                           "it decides by the present configuration; after a change of sources or [events], "
                           "wait %s, and then compare what came later: gatepost audit --since TIME",
                           number_format_duration((uint64_t)audit->plan->slack_ms, wait));
}

/* Print how many deliveries were checked, and of which time. */
static void
print_checked(const struct audit *audit)
{
        const struct audit_partition *all = &audit->deliveries;
        char first[CLOCK_RFC3339_SIZE], last[CLOCK_RFC3339_SIZE];

        printf("%" PRIu64 " deliveries checked", all->n_checked);
        if (all->n_checked > 0)
                printf(", from %s to %s", clock_format_ms(all->first_checked_ms, first),
                       clock_format_ms(all->last_checked_ms, last));
        if (all->n_waiting > 0)
                printf("; %" PRIu64 " not yet routed", all->n_waiting);
        if (all->n_unjudged + all->n_results_deleted > 0)
                printf("; %" PRIu64 " not checked, up to %s", all->n_unjudged + all->n_results_deleted,
                       clock_format_ms(all->last_unchecked_ms, first));
        for (size_t r = 0; r < AUDIT_N_EXCEPTIONS; r++) {
                if (audit->n_excepted[r] > 0)
                        printf("; %" PRIu64 " in quarantine as %s", audit->n_excepted[r],
                               audit_work_exception_name((enum audit_exception_reason)r));
        }
        putchar('\n');
}

void
audit_print_text(const struct audit *audit)
{
        char text[CLOCK_RFC3339_SIZE];
        int has_since = 0;

        for (size_t t = 0; t < audit->plan->n_topics; t++)
                has_since |= *format_since(audit, t, text) != '\0';
        print_checked(audit);
        printf("%-*s %10s %10s %8s %10s %10s%s\n", NAME_WIDTH, "TOPIC", "EXPECTED", "FOUND", "LOST",
               "DUPLICATED", "UNEXPECTED", has_since ? "  CHECKED SINCE" : "");
        for (size_t t = 0; t < audit->plan->n_topics; t++)
                print_counts(audit->plan->topics[t], &audit->topics[t], format_since(audit, t, text));
        print_counts("total", &audit->total, "");
        (void)fflush(stdout);
        print_limits(audit);
        print_examples(audit);
        print_hint(audit);
}

static void
put_counts(struct json_writer *json, const struct audit_counts *counts)
{
        json_number(json, "expected", (int64_t)counts->n_required);
        json_number(json, "found", (int64_t)count_found(counts));
        for (size_t f = 0; f < TALLY_N_FAULTS; f++)
                json_number(json, fault_names[f], (int64_t)counts->n_faults[f]);
        json_number(json, "unchecked", (int64_t)counts->n_older);
}

static void
put_topics(struct json_writer *json, const struct audit *audit)
{
        char text[CLOCK_RFC3339_SIZE];

        json_open_array(json, "topics");
        for (size_t t = 0; t < audit->plan->n_topics; t++) {
                const char *since = format_since(audit, t, text);

                json_open_object(json, NULL);
                json_member(json, "topic", audit->plan->topics[t]);
                put_counts(json, &audit->topics[t]);
                json_member(json, "checkedSince", *since == '\0' ? NULL : since);
                json_close_object(json);
        }
        json_close_array(json);
}

static void
put_time(struct json_writer *json, const char *name, uint64_t n, int64_t ms)
{
        char text[CLOCK_RFC3339_SIZE];

        json_member(json, name, n == 0 ? NULL : clock_format_ms(ms, text));
}

static void
put_partition(struct json_writer *json, const struct audit_partition *partition)
{
        uint64_t n_unchecked = partition->n_unjudged + partition->n_results_deleted;

        json_number(json, "checked", (int64_t)partition->n_checked);
        put_time(json, "checkedFrom", partition->n_checked, partition->first_checked_ms);
        put_time(json, "checkedTo", partition->n_checked, partition->last_checked_ms);
        json_number(json, "unchecked", (int64_t)n_unchecked);
        put_time(json, "uncheckedTo", n_unchecked, partition->last_unchecked_ms);
        json_number(json, "waiting", (int64_t)partition->n_waiting);
        put_time(json, "waitingSince", partition->n_waiting, partition->first_waiting_ms);
}

/* Add which of the deliveries were checked, and which were not. */
static void
put_deliveries(struct json_writer *json, const struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;
        int64_t n_deleted = 0;

        json_open_object(json, "deliveries");
        put_partition(json, &audit->deliveries);
        for (size_t r = 0; r < AUDIT_N_EXCEPTIONS; r++)
                json_number(json, audit_work_exception_name((enum audit_exception_reason)r),
                            (int64_t)audit->n_excepted[r]);
        for (size_t p = 0; p < plan->n_deliveries; p++)
                n_deleted += audit_plan_deleted(plan, p);
        json_number(json, "deletedBeforeRouting", n_deleted);
        json_number(json, "offsetsWithoutRecord", (int64_t)audit_work_gaps(audit));
        json_open_array(json, "partitions");
        for (size_t p = 0; p < plan->n_deliveries; p++) {
                json_open_object(json, NULL);
                json_number(json, "partition", (int64_t)p);
                json_number(json, "begin", plan->begin[p]);
                json_number(json, "end", plan->deliveries[p].to);
                if (plan->committed[p] < 0)
                        json_null(json, "committed");
                else
                        json_number(json, "committed", plan->committed[p]);
                put_partition(json, &audit->partitions[p]);
                json_number(json, "deletedBeforeRouting", audit_plan_deleted(plan, p));
                json_close_object(json);
        }
        json_close_array(json);
        json_close_object(json);
}

static void
put_example(struct json_writer *json, const struct audit *audit, const struct audit_example *example)
{
        const struct tally_finding *finding = &example->finding;

        json_open_object(json, NULL);
        json_member(json, "what", fault_names[finding->fault]);
        json_number(json, "n", (int64_t)finding->n);
        json_member(json, "topic", audit->plan->topics[finding->place.topic]);
        json_member(json, "deliveryId", example->delivery_id);
        json_open_object(json, "at");
        json_member(json, "topic", audit_work_topic(audit, finding));
        json_number(json, "partition", (int64_t)finding->place.partition);
        json_number(json, "offset", (int64_t)finding->place.offset);
        json_close_object(json);
        json_close_object(json);
}

void
audit_print_json(const struct audit *audit)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        put_counts(json, &audit->total);
        put_deliveries(json, audit);
        put_topics(json, audit);
        json_open_array(json, "examples");
        for (size_t i = 0; i < audit->n_examples; i++)
                put_example(json, audit, &audit->examples[i]);
        json_close_array(json);
        json_close_object(json);
        json_print(json);
        (void)fflush(stdout);
        print_limits(audit);
        print_hint(audit);
}
