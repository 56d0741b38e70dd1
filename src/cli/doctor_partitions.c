#include "cli/doctor_daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/doctor_kafka.h"
#include "cli/kafka_access.h"
#include "cli/status.h"
#include "cli/terminal.h"

/*
 * Whether all partitions of `deliveries` are routed, by whichever router has them. Test deliveries need
 * not be sent, and a router knows its own partitions: what the group commits shows all.
 */

#define DECIDE_TIMEOUT_MS 30000
#define PAUSE_MS 200
#define LIST_SIZE 200

/* The records that wait in each partition: a range from the committed offset on. */
struct waiting {
        struct offsets *offsets;
        struct range *ranges; /* of a partition in which none waits any more: empty */
        size_t n;
        int64_t *first_ms; /* when the first of them was appended */
        struct doctor_positions positions;
        struct range *open; /* what open transactions hide */
        int n_open;
        struct range deleted; /* of the first partition with such, before they were routed; empty: none */
};

/* Forget the partitions whose committed offset is beyond the first record that waits. Returns 0, or -1. */
static int
drop_decided(struct waiting *waiting, const struct config *config, struct error *error)
{
        if (doctor_positions_look(&waiting->positions, waiting->offsets, config->deliveries_topic, waiting->n,
                                  error) != 0)
                return -1;
        for (size_t i = 0; i < waiting->n; i++) {
                if (waiting->positions.committed[i] > waiting->ranges[i].from)
                        waiting->ranges[i].to = waiting->ranges[i].from;
        }
        waiting->n_open = doctor_transactions_look(waiting->offsets, config->deliveries_topic, waiting->n,
                                                   &waiting->open, error);
        return waiting->n_open < 0 ? -1 : 0;
}

/* Note a partition whose log begins after what was routed: retention has deleted what was in between. */
static void
note_deleted(struct waiting *waiting)
{
        const int64_t *committed = waiting->positions.committed;
        size_t i = 0;

        while (i < waiting->n && (committed[i] < 0 || committed[i] >= waiting->ranges[i].from))
                i++;
        if (i == waiting->n)
                return;
        waiting->deleted = waiting->ranges[i];
        waiting->deleted.to = waiting->ranges[i].from;
        waiting->deleted.from = committed[i];
}

/* Find the partitions in which records wait now. Returns as range_read(). */
static enum range_result
find_waiting(struct waiting *waiting, const struct config *config, struct error *error)
{
        enum range_result result;

        waiting->offsets = offsets_new(config, NULL, error);
        if (waiting->offsets == NULL ||
            offsets_stable_ranges(waiting->offsets, config->deliveries_topic, &waiting->ranges, &waiting->n,
                                  KAFKA_ACCESS_TIMEOUT_MS, error) != 0)
                return doctor_kafka_why(waiting->offsets);
        waiting->first_ms = mem_alloc(waiting->n * sizeof(*waiting->first_ms));
        if (doctor_positions_look(&waiting->positions, waiting->offsets, config->deliveries_topic, waiting->n,
                                  error) != 0)
                return doctor_kafka_why(waiting->offsets);
        note_deleted(waiting);
        for (size_t i = 0; i < waiting->n; i++) {
                if (waiting->positions.committed[i] > waiting->ranges[i].from)
                        waiting->ranges[i].from = waiting->positions.committed[i];
        }
        result = range_first(config, NULL, waiting->ranges, waiting->n, waiting->first_ms, error);
        if (result != RANGE_DONE)
                return result;
        for (size_t i = 0; i < waiting->n; i++) {
                if (waiting->first_ms[i] == RANGE_KEPT_NOTHING) /* only control records, or deleted ones */
                        waiting->ranges[i].to = waiting->ranges[i].from;
        }
        return RANGE_DONE;
}

/* Return the first partition, from this one on, in which records wait, or the number of partitions. */
static size_t
next_waiting(const struct waiting *waiting, size_t i)
{
        while (i < waiting->n && waiting->ranges[i].from >= waiting->ranges[i].to)
                i++;
        return i;
}

/* Write what this machine's daemon says of a partition: its state, or that another router has it, if any. */
static void
describe(const struct doctor *doctor, size_t partition, char *text, size_t size)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const struct json_value *all = json_tree_get(status, "partitions");

        (void)snprintf(text, size, "%s", all == NULL ? "" : "; another router has it");
        for (const struct json_value *each = all == NULL ? NULL : all->first; each != NULL;
             each = each->next) {
                const char *state = json_tree_text(each, "state"), *cause = json_tree_text(each, "cause");

                if (status_number(each, "partition") == (double)partition && state != NULL &&
                    strcmp(state, "standby") != 0)
                        (void)snprintf(text, size, "; by the gatepostd of this machine, its state is %s%s%s",
                                       state, cause == NULL || *cause == '\0' ? "" : ", ",
                                       cause == NULL ? "" : cause);
        }
        json_tree_free(status);
}

static void
report_waiting(struct doctor *doctor, const struct waiting *waiting)
{
        size_t first = next_waiting(waiting, 0), n = 0;
        char list[LIST_SIZE] = "", state[LIST_SIZE], age[NUMBER_TEXT_SIZE];
        int64_t age_ms = clock_now_ms() - waiting->first_ms[first];
        int len = 0;

        for (size_t i = first; i < waiting->n; i = next_waiting(waiting, i + 1), n++) {
                if (len < LIST_SIZE - 20)
                        len +=
                            snprintf(list + len, (size_t)(LIST_SIZE - len), "%s%zu", n == 0 ? "" : ", ", i);
        }
        (void)number_format_duration(age_ms < 1000 ? 0 : (uint64_t)age_ms / 1000 * 1000, age);
        describe(doctor, first, state, sizeof(state));
        doctor_fail(
            doctor, EX_UNAVAILABLE,
            "%zu of %zu partitions %s not routed, %s: deliveries wait there, in %zu the first for %s, "
            "and none was decided within %d s%s",
            n, waiting->n, n == 1 ? "is" : "are", list, first, age, DECIDE_TIMEOUT_MS / 1000, state);
        doctor_remedy(doctor,
                      "see why on the machine of each router, by gatepost status and its log: a "
                      "router that hangs keeps its partitions for a time; one that restores needs to be "
                      "waited for");
}

static void
wait_for_routers(struct doctor *doctor, struct waiting *waiting)
{
        int64_t until_ms = clock_monotonic_ms() + DECIDE_TIMEOUT_MS;
        enum range_result result;
        struct error error;
        size_t misfit;
        int is_done;

        result = find_waiting(waiting, doctor->config, &error);
        if (result != RANGE_DONE) {
                doctor_kafka_report(doctor, result, &error);
                return;
        }
        do {
                if (drop_decided(waiting, doctor->config, &error) != 0) {
                        doctor_kafka_report(doctor, doctor_kafka_why(waiting->offsets), &error);
                        return;
                }
                misfit = doctor_positions_misfit(&waiting->positions);
                is_done =
                    next_waiting(waiting, 0) == waiting->n && waiting->n_open == 0 && misfit == waiting->n;
                if (!is_done)
                        clock_sleep_ms(PAUSE_MS);
        } while (!is_done && clock_monotonic_ms() < until_ms && !terminal_is_interrupted());
        if (is_done && waiting->deleted.from < waiting->deleted.to)
                doctor_warn(doctor,
                            "in partition %" PRId32 ", the offsets %" PRId64 " to %" PRId64
                            " were deleted before they were routed: their deliveries are lost here; gatepost "
                            "audit counts them; let retention.ms be longer than routers may be down",
                            waiting->deleted.partition, waiting->deleted.from, waiting->deleted.to - 1);
        else if (is_done)
                doctor_pass(doctor, "%zu, and in none a delivery waits without being decided", waiting->n);
        else if (terminal_is_interrupted())
                doctor_skip(doctor, "interrupted");
        else if (misfit < waiting->n)
                doctor_positions_report(doctor, &waiting->positions, misfit);
        else if (next_waiting(waiting, 0) < waiting->n)
                report_waiting(doctor, waiting);
        else
                doctor_transactions_report(doctor, waiting->open, waiting->n);
}

void
doctor_check_partitions(struct doctor *doctor)
{
        struct waiting waiting = {0};

        if (!(doctor->config->roles & CONFIG_ROUTER) || doctor->config->embedded)
                return;
        doctor_begin(doctor, "partitions", "%s", doctor->config->deliveries_topic);
        wait_for_routers(doctor, &waiting);
        offsets_free(waiting.offsets);
        free(waiting.ranges);
        free(waiting.open);
        doctor_positions_clear(&waiting.positions);
        free(waiting.first_ms);
}
