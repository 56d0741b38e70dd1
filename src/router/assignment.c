#include "router/assignment.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/mem.h"
#include "router/partition_status.h"
#include "router/table.h"

#define PAUSE_MS 200
#define CERTAIN_AFTER_MS 10000 /* a broker that was cut off may report an old end of the log for a while */
#define TURN_LOOK_MS 5000
#define SLOW_RECORDS 50000 /* in that time; usually more than a million are read */
#define FEW_RECORDS 10000  /* to read for a table: a fraction of a second, for which none need wait */

int
assignment_open(struct assignment *assignment, const struct config *config, const char *bootstrap,
                struct partition_list *partitions, struct state *state, struct metrics *metrics,
                struct error *error)
{
        *assignment = (struct assignment){
            .config = config, .state = state, .metrics = metrics, .partitions = partitions, .restoring = -1};
        assignment->finder = position_finder_new(config, bootstrap, metrics != NULL, error);
        return assignment->finder == NULL ? -1 : 0;
}

void
assignment_close(struct assignment *assignment)
{
        position_finder_free(assignment->finder);
}

/* Another router gets a partition: follow it from now on, or forget it. Returns -1 when memory fails. */
static int
give_up(struct partition_list *partitions, struct partition *partition, struct partition_list *followed)
{
        if (followed == NULL) {
                partition_remove(partitions, partition);
                return 0;
        }
        if (partition_move(partitions, followed, partition, clock_monotonic_ms()) != 0)
                return -1;
        partition->is_followed = 1;
        return 0;
}

/* This router gets a partition: take its table if it was followed. Returns -1 when memory fails. */
static int
take_over(struct partition_list *partitions, int32_t id, struct partition_list *followed)
{
        struct partition *partition = followed == NULL ? NULL : partition_find(followed, id);

        if (partition == NULL)
                return partition_add(partitions, id) == NULL ? -1 : 0;
        if (partition_move(followed, partitions, partition, clock_monotonic_ms()) != 0)
                return -1;
        partition->is_followed = 0;
        return 0;
}

int
assignment_set(struct assignment *assignment, const rd_kafka_topic_partition_list_t *assigned,
               struct partition_list *followed)
{
        struct partition_list *partitions = assignment->partitions;

        for (size_t i = partitions->n; i > 0; i--) {
                if (rd_kafka_topic_partition_list_find(assigned, assignment->config->deliveries_topic,
                                                       partitions->items[i - 1]->id) == NULL &&
                    give_up(partitions, partitions->items[i - 1], followed) != 0)
                        return -1;
        }
        for (int i = 0; i < assigned->cnt; i++) {
                if (partition_find(partitions, assigned->elems[i].partition) == NULL &&
                    take_over(partitions, assigned->elems[i].partition, followed) != 0)
                        return -1;
        }
        assignment_void_positions(assignment);
        position_finder_set_assigned(assignment->finder, assigned->cnt);
        assignment->is_stale = 1;
        return 0;
}

void
assignment_void_positions(struct assignment *assignment)
{
        int64_t now_ms = clock_monotonic_ms();

        assignment->generation++;
        for (size_t i = 0; i < assignment->partitions->n; i++) {
                struct partition *partition = assignment->partitions->items[i];

                if (partition->stage == PARTITION_UNPOSITIONED)
                        continue;
                partition->stage = PARTITION_UNPOSITIONED;
                partition->retry_ms = now_ms;
                partition_rewind(partition);
        }
}

/* Only the router of the partition tells, even if it has found out when it followed the partition. */
static void
tell_truncation(const struct position *position, struct partition *partition, struct metrics *metrics)
{
        if (position->n_cut_off == 0 || partition->told_cut_at == position->decide_from ||
            partition->is_followed)
                return;
        partition->told_cut_at = position->decide_from;
        log_error("Kafka has lost records that were routed: the log was cut off; routing resumes at the "
                  "first record appended since partition=%" PRId32 " offset=%" PRId64
                  " routed_up_to=%" PRId64,
                  position->partition, position->decide_from, position->decide_from + position->n_cut_off);
        metrics_count(metrics, METRICS_TRUNCATIONS, 1);
}

/* Note the trouble that keeps the partition without a position. Returns 0. */
static int
keep_waiting(const struct position *position, struct partition *partition, enum partition_trouble trouble,
             const char *reason, int64_t now_ms)
{
        /* What was found by reading is told when the position says what to do about it. */
        int is_news = partition->trouble != trouble ||
                      (trouble == TROUBLE_OTHER_LOG && strcmp(partition->reason.text, reason) != 0);

        /*
         * An unavailable log may return as another one. If only an output topic fails, the log is available.
         */
        if (trouble != TROUBLE_TOPIC)
                partition_forget_open(partition, now_ms);
        partition_void_position(partition, trouble, reason, PAUSE_MS, now_ms);
        /* An offset that a tool has set does not become right when the log has grown up to it. */
        if (trouble == TROUBLE_BEYOND_END && position->routed_ms < 0) {
                partition->diverged_at = position->decide_from;
                partition->diverged_ms = -1;
        }
        if (is_news)
                partition_status_log_waiting(partition);
        return 0;
}

/*
 * Give a partition its position, or note why that is impossible. is_new: its table does not serve. Returns
 * whether it has a position.
 */
static int
apply(const struct assignment *assignment, const struct position *position, struct partition *partition,
      int is_new, int64_t now_ms)
{
        if (position->high >= 0)
                partition->high = position->high;
        if (position->trouble != TROUBLE_NONE)
                return keep_waiting(position, partition, position->trouble, position->error.text, now_ms);
        if (table_is_cut_off(position, partition) && partition->diverged_at < 0 &&
            (partition->trouble != TROUBLE_TRUNCATED || now_ms - partition->troubled_ms < CERTAIN_AFTER_MS))
                return keep_waiting(position, partition, TROUBLE_TRUNCATED,
                                    "the log ends before the committed offset, and has newer records",
                                    now_ms);
        partition->is_continued = !is_new && partition->next < position->decide_from;
        if (is_new) {
                if (table_restore(position, assignment->config, assignment->state, partition) != 0)
                        return keep_waiting(position, partition, TROUBLE_UNREACHABLE, "out of memory",
                                            now_ms);
        } else if (position->n_cut_off == 0) {
                table_confirm(position, partition);
        }
        /* Read the record before the committed offset again, to verify that the log is the routed one. */
        if (partition->next > position->decide_from)
                partition->next = position->decide_from;
        if (position->routed_ms >= 0 && partition->next == position->decide_from &&
            partition->next > position->low && !partition->is_followed)
                partition->next--;
        partition->decide_from = position->decide_from;
        partition->routed_ms = position->routed_ms;
        partition->cut_at = position->n_cut_off > 0 ? position->decide_from : -1;
        if (position->n_cut_off == 0)
                partition->diverged_at = -1;
        partition->topic[0] = '\0';
        partition->stage = PARTITION_POSITIONED;
        partition->positioned_ms = now_ms;
        partition->is_slow = 0;
        if (partition->is_followed && !is_new)
                return 1;
        if (position->is_uncommitted && position->high > position->low && !partition->is_followed)
                log_notice(
                    "the group has no committed offset in this partition: all records in its log are routed; "
                    "if the partition was added within dedup_window, repeats of earlier deliveries may be "
                    "published again partition=%" PRId32 " records=%" PRId64,
                    partition->id, position->high - position->low);
        log_info("%s partition=%" PRId32 " committed=%" PRId64 " reading_from=%" PRId64,
                 partition->is_followed ? "following a partition of another router" : "partition assigned",
                 partition->id, partition->decide_from, partition->next);
        return 1;
}

static void
count_deleted(struct assignment *assignment, const struct position *position, struct partition *partition)
{
        if (position->n_deleted == 0 || position->low <= partition->counted_to || partition->is_followed)
                return;
        log_error(
            "records were deleted before they were routed: the retention is too short partition=%" PRId32
            " from=%" PRId64 " to=%" PRId64,
            position->partition, position->low - position->n_deleted, position->low - 1);
        metrics_count(assignment->metrics, METRICS_DELETED,
                      (uint64_t)(partition->counted_to > position->low - position->n_deleted
                                     ? position->low - partition->counted_to
                                     : position->n_deleted));
        partition->counted_to = position->low;
}

static void
take_answers(struct assignment *assignment)
{
        size_t n;
        struct position *positions = position_finder_take(assignment->finder, &n);
        int is_news = 0;

        for (size_t i = 0; positions != NULL && i < n; i++) {
                struct partition *partition = partition_find(assignment->partitions, positions[i].partition);
                int is_new;

                if (assignment->asked_generation != assignment->generation || partition == NULL ||
                    partition->stage != PARTITION_ASKED)
                        continue;
                is_new = !table_serves(&positions[i], partition);
                is_news |= is_new;
                if (apply(assignment, &positions[i], partition, is_new, clock_monotonic_ms())) {
                        count_deleted(assignment, &positions[i], partition);
                        tell_truncation(&positions[i], partition, assignment->metrics);
                        assignment->is_stale = 1;
                }
        }
        if (is_news)
                table_announce(assignment->partitions, assignment->state);
        free(positions);
}

/* Whether to ask for the position now. Open records must be committed first: the answer depends on them. */
static int
is_position_due(const struct partition *partition, int64_t now_ms)
{
        return partition->stage == PARTITION_UNPOSITIONED && partition->retry_ms <= now_ms &&
               partition_open(partition) == 0;
}

/* Ask for the positions that are due. */
static void
ask(struct assignment *assignment)
{
        const struct partition_list *partitions = assignment->partitions;
        int64_t now_ms = clock_monotonic_ms();
        struct position_question *questions;
        size_t n_due = 0, n = 0;

        for (size_t i = 0; i < partitions->n; i++)
                n_due += (size_t)is_position_due(partitions->items[i], now_ms);
        if (n_due == 0 || position_finder_is_busy(assignment->finder))
                return;
        questions = mem_alloc(n_due * sizeof(*questions));
        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                if (!is_position_due(partition, now_ms))
                        continue;
                partition->stage = PARTITION_ASKED;
                questions[n++] = position_question(partition);
        }
        position_finder_ask(assignment->finder, questions, n);
        assignment->asked_generation = assignment->generation;
        free(questions);
}

/*
 * Whether records are still to be read for a partition's table. Not if none come, for whatever reason: it
 * must keep no other partition waiting.
 */
static int
is_restoring(const struct partition *partition)
{
        return partition->trouble == TROUBLE_NONE && partition_to_restore(partition) > 0 &&
               partition->end.from != partition->next;
}

/* Choose the table to restore next. */
static void
give_turn(struct assignment *assignment)
{
        const struct partition_list *partitions = assignment->partitions;
        const int64_t few = (int64_t)crash_limit("GATEPOST_FEW_RECORDS", FEW_RECORDS);
        int32_t before = assignment->restoring;
        struct partition *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                partition->awaits_turn =
                    is_restoring(partition) && partition_to_restore(partition) > few && !partition->is_slow;
                if (partition->awaits_turn &&
                    (first == NULL || partition_to_restore(partition) < partition_to_restore(first)))
                        first = partition;
                n += (size_t)partition->awaits_turn;
        }
        assignment->restoring = first == NULL ? -1 : first->id;
        if (first == NULL)
                return;
        first->awaits_turn = 0;
        for (size_t i = 0; i < partitions->n; i++) {
                if (partitions->items[i]->awaits_turn)
                        partition_doubt_origin(partitions->items[i]);
        }
        assignment->turn_ms = clock_monotonic_ms();
        assignment->turn_next = first->next;
        if (first->id != before && !first->is_followed)
                log_info("restoring a dedup table from the log partition=%" PRId32 " records=%" PRId64
                         " waiting_partitions=%zu",
                         first->id, partition_to_restore(first), n - 1);
}

static int
is_turn_over(struct assignment *assignment)
{
        struct partition *partition =
            assignment->restoring < 0 ? NULL : partition_find(assignment->partitions, assignment->restoring);
        int64_t now_ms = clock_monotonic_ms();

        if (assignment->restoring < 0)
                return 0;
        if (partition == NULL || !is_restoring(partition))
                return 1;
        if (now_ms - assignment->turn_ms < TURN_LOOK_MS)
                return 0;
        partition->is_slow = partition->next - assignment->turn_next < SLOW_RECORDS;
        assignment->turn_ms = now_ms;
        assignment->turn_next = partition->next;
        return partition->is_slow;
}

/* Assign the partitions with a position to the consumer, except those that wait for their turn. */
static void
assign(struct assignment *assignment, struct consumer *consumer)
{
        const struct partition_list *partitions = assignment->partitions;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)partitions->n);
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        give_turn(assignment);
        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                if (partition->stage != PARTITION_POSITIONED || partition->awaits_turn ||
                    (partition->is_followed && partition->next >= partition->decide_from))
                        continue;
                partition->scan_next = -1;
                rd_kafka_topic_partition_list_add(list, assignment->config->deliveries_topic, partition->id)
                    ->offset = partition->next;
        }
        assignment->is_stale = consumer_assign(consumer, list, &error) != 0;
        if (assignment->is_stale)
                log_warning("cannot assign partitions to the consumer reason=%s",
                            log_quote(error.text, quoted));
        rd_kafka_topic_partition_list_destroy(list);
}

void
assignment_start_reading(struct assignment *assignment, struct consumer *consumer)
{
        take_answers(assignment);
        ask(assignment);
        if (assignment->is_stale || is_turn_over(assignment))
                assign(assignment, consumer);
}

int
assignment_is_restoring(const struct assignment *assignment)
{
        for (size_t i = 0; i < assignment->partitions->n; i++) {
                if (is_restoring(assignment->partitions->items[i]))
                        return 1;
        }
        return 0;
}

int
assignment_is_awaited(const struct assignment *assignment)
{
        return position_finder_is_busy(assignment->finder);
}

static void
lose(struct assignment *assignment, struct partition *partition, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (partition->trouble != TROUBLE_READ)
                log_warning("reading a partition failed; looking up its position again partition=%" PRId32
                            " offset=%" PRId64 " reason=%s",
                            partition->id, partition->next, log_quote(reason, quoted));
        partition_void_position(partition, TROUBLE_READ, reason, PAUSE_MS, clock_monotonic_ms());
        assignment->is_stale = 1;
}

void
assignment_lose_position(struct assignment *assignment, int32_t id, const char *reason)
{
        struct partition *partition = partition_find(assignment->partitions, id);

        if (partition != NULL && partition->stage == PARTITION_POSITIONED)
                lose(assignment, partition, reason);
}

int
assignment_end_scans(struct assignment *assignment, struct consumer *consumer)
{
        int64_t now_ms = clock_monotonic_ms();
        int is_scanning = 0;

        for (size_t i = 0; i < assignment->partitions->n; i++) {
                struct partition *partition = assignment->partitions->items[i];
                struct error error;

                if (partition->scan_next < 0)
                        continue;
                if (!partition_ends_scan(partition, now_ms))
                        is_scanning = 1;
                else if (consumer_seek(consumer, assignment->config->deliveries_topic, partition->id,
                                       partition->next, &error) != 0)
                        lose(assignment, partition, error.text);
        }
        return is_scanning;
}
