#include "cli/audit_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "cli/command.h"

#define NAME_WIDTH 40

/* Deliveries that wait for longer wait for a router that does not run. */
#define MAX_WAIT_MS INT64_C(300000)

static const char *const fault_names[TALLY_N_FAULTS] = {
    [TALLY_LOST] = "lost", [TALLY_DUPLICATED] = "duplicated", [TALLY_UNEXPECTED] = "unexpected"};

void
audit_result_add(struct audit_result *result, const struct tally_finding *finding)
{
        result->topics[finding->place.topic].n_faults[finding->fault] += finding->n;
        if (result->n_examples < AUDIT_MAX_EXAMPLES)
                result->examples[result->n_examples++].finding = *finding;
}

const char *
audit_result_topic(const struct audit_result *result, const struct tally_finding *finding)
{
        return finding->fault == TALLY_LOST ? result->config->deliveries_topic
                                            : result->names[finding->place.topic];
}

static struct audit_counts
sum_topics(const struct audit_result *result)
{
        struct audit_counts total = {0};

        for (size_t t = 0; t < result->n_topics; t++) {
                total.n_required += result->topics[t].n_required;
                total.n_older += result->topics[t].n_older;
                for (size_t f = 0; f < TALLY_N_FAULTS; f++)
                        total.n_faults[f] += result->topics[t].n_faults[f];
        }
        return total;
}

static uint64_t
count_faults(const struct audit_counts *counts)
{
        return counts->n_faults[TALLY_LOST] + counts->n_faults[TALLY_DUPLICATED] +
               counts->n_faults[TALLY_UNEXPECTED];
}

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

/* Return whether deliveries wait for a router that does not run. */
static int
is_waiting(const struct audit_deliveries *deliveries)
{
        return deliveries->n_waiting > 0 &&
               (deliveries->has_no_router || clock_now_ms() - deliveries->first_waiting_ms > MAX_WAIT_MS);
}

int
audit_result_status(const struct audit_result *result)
{
        const struct audit_deliveries *deliveries = &result->deliveries;
        const struct audit_counts total = sum_topics(result);

        if (count_faults(&total) + deliveries->n_deleted > 0)
                return EX_DATAERR;
        if (is_waiting(deliveries))
                return EX_TEMPFAIL;
        if (deliveries->n_checked == 0)
                return EX_NOINPUT;
        return result->has_since && deliveries->n_unchecked > 0 ? EX_NOINPUT : 0;
}

static void
print_counts(const char *name, const struct audit_counts *counts)
{
        printf("%-*s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", NAME_WIDTH,
               name, counts->n_required, count_found(counts), counts->n_faults[TALLY_LOST],
               counts->n_faults[TALLY_DUPLICATED], counts->n_faults[TALLY_UNEXPECTED]);
}

/* Print how many deliveries were checked, and of which time. */
static void
print_checked(const struct audit_deliveries *deliveries)
{
        char first[CLOCK_RFC3339_SIZE], last[CLOCK_RFC3339_SIZE];

        printf("%" PRIu64 " deliveries checked", deliveries->n_checked);
        if (deliveries->n_checked > 0)
                printf(", from %s to %s", clock_format_ms(deliveries->first_checked_ms, first),
                       clock_format_ms(deliveries->last_checked_ms, last));
        if (deliveries->n_waiting > 0)
                printf("; %" PRIu64 " not yet routed", deliveries->n_waiting);
        if (deliveries->n_unchecked > 0)
                printf("; %" PRIu64 " not checked, up to %s", deliveries->n_unchecked,
                       clock_format_ms(deliveries->last_unchecked_ms, first));
        if (deliveries->n_excepted > 0)
                printf("; %" PRIu64 " accepted in quarantine", deliveries->n_excepted);
        putchar('\n');
}

/* Print what could not be checked. */
static void
print_limits(const struct audit_result *result, const struct audit_counts *total)
{
        const struct audit_deliveries *deliveries = &result->deliveries;
        char since[CLOCK_RFC3339_SIZE];

        if (deliveries->n_deleted > 0)
                fprintf(stderr, "deleted before routing: up to %" PRIu64 " deliveries\n",
                        deliveries->n_deleted);
        if (is_waiting(deliveries))
                fprintf(stderr,
                        "waiting: %" PRIu64 " deliveries for a router, the oldest since %s; see gatepost "
                        "status\n",
                        deliveries->n_waiting, clock_format_ms(deliveries->first_waiting_ms, since));
        if (deliveries->n_checked == 0)
                (void)command_fail(
                    0, "nothing was checked: no delivery was routed, or too little of the log is left");
        if (deliveries->n_unchecked > 0)
                fprintf(stderr,
                        "not checked: %" PRIu64
                        " deliveries, because records of that time or before were deleted\n",
                        deliveries->n_unchecked);
        if (total->n_older > 0)
                fprintf(stderr,
                        "not checked: %" PRIu64
                        " published records, because their deliveries are older than those compared\n",
                        total->n_older);
}

static void
print_examples(const struct audit_result *result, uint64_t n_faults)
{
        uint64_t n_shown = 0;

        for (size_t i = 0; i < result->n_examples; i++) {
                const struct audit_example *example = &result->examples[i];
                const struct tally_finding *finding = &example->finding;

                n_shown += finding->n;
                fprintf(stderr, "%s: %s, delivery-id %s, at %" PRId32 "/%" PRId64 " of %s",
                        fault_names[finding->fault], result->names[finding->place.topic],
                        example->delivery_id, finding->place.partition, finding->place.offset,
                        audit_result_topic(result, finding));
                if (finding->n > 1)
                        fprintf(stderr, ", %" PRIu64 " times", finding->n);
                fputc('\n', stderr);
        }
        if (n_faults > n_shown)
                fprintf(stderr, "and %" PRIu64 " more\n", n_faults - n_shown);
}

/*
 * Records that are lost or unexpected may have been published by an earlier configuration. With --since,
 * audit_plan_use() leaves them out if the time is later than the change by the slack.
 */
static void
print_hint(const struct audit_result *result, const struct audit_counts *total)
{
        char wait[NUMBER_TEXT_SIZE];

        if (total->n_faults[TALLY_LOST] + total->n_faults[TALLY_UNEXPECTED] == 0)
                return;
        command_note_routers(result->config);
        (void)command_fail(0,
                           "it decides by the present configuration; after a change of sources or [events], "
                           "wait %s, and then compare what came later: gatepost audit --since TIME",
                           number_format_duration((uint64_t)result->slack_ms, wait));
}

void
audit_result_print_text(const struct audit_result *result)
{
        const struct audit_counts total = sum_topics(result);

        print_checked(&result->deliveries);
        printf("%-*s %10s %10s %8s %10s %10s\n", NAME_WIDTH, "TOPIC", "EXPECTED", "FOUND", "LOST",
               "DUPLICATED", "UNEXPECTED");
        for (size_t t = 0; t < result->n_topics; t++)
                print_counts(result->names[t], &result->topics[t]);
        print_counts("total", &total);
        (void)fflush(stdout);
        print_limits(result, &total);
        print_examples(result, count_faults(&total));
        print_hint(result, &total);
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
put_time(struct json_writer *json, const char *name, uint64_t n, int64_t ms)
{
        char text[CLOCK_RFC3339_SIZE];

        json_member(json, name, n == 0 ? NULL : clock_format_ms(ms, text));
}

static void
put_deliveries(struct json_writer *json, const struct audit_deliveries *deliveries)
{
        json_open_object(json, "deliveries");
        json_number(json, "checked", (int64_t)deliveries->n_checked);
        put_time(json, "checkedFrom", deliveries->n_checked, deliveries->first_checked_ms);
        put_time(json, "checkedTo", deliveries->n_checked, deliveries->last_checked_ms);
        json_number(json, "unchecked", (int64_t)deliveries->n_unchecked);
        put_time(json, "uncheckedTo", deliveries->n_unchecked, deliveries->last_unchecked_ms);
        json_number(json, "waiting", (int64_t)deliveries->n_waiting);
        put_time(json, "waitingSince", deliveries->n_waiting, deliveries->first_waiting_ms);
        json_number(json, "acceptedInQuarantine", (int64_t)deliveries->n_excepted);
        json_number(json, "deletedBeforeRouting", (int64_t)deliveries->n_deleted);
        json_close_object(json);
}

static void
put_example(struct json_writer *json, const struct audit_result *result, const struct audit_example *example)
{
        const struct tally_finding *finding = &example->finding;

        json_open_object(json, NULL);
        json_member(json, "what", fault_names[finding->fault]);
        json_number(json, "n", (int64_t)finding->n);
        json_member(json, "topic", result->names[finding->place.topic]);
        json_member(json, "deliveryId", example->delivery_id);
        json_open_object(json, "at");
        json_member(json, "topic", audit_result_topic(result, finding));
        json_number(json, "partition", (int64_t)finding->place.partition);
        json_number(json, "offset", (int64_t)finding->place.offset);
        json_close_object(json);
        json_close_object(json);
}

void
audit_result_print_json(const struct audit_result *result)
{
        const struct audit_counts total = sum_topics(result);
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        put_counts(json, &total);
        put_deliveries(json, &result->deliveries);
        json_open_array(json, "topics");
        for (size_t t = 0; t < result->n_topics; t++) {
                json_open_object(json, NULL);
                json_member(json, "topic", result->names[t]);
                put_counts(json, &result->topics[t]);
                json_close_object(json);
        }
        json_close_array(json);
        json_open_array(json, "examples");
        for (size_t i = 0; i < result->n_examples; i++)
                put_example(json, result, &result->examples[i]);
        json_close_array(json);
        json_close_object(json);
        json_print(json);
        (void)fflush(stdout);
        print_limits(result, &total);
        print_hint(result, &total);
}
