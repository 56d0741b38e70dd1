#include "router/placement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define PAUSE_MS 200
#define CERTAIN_AFTER_MS 10000 /* a broker that was cut off may report an old end of the log for a while */
#define SETTLED_AFTER_MS 5000  /* reading for this long clears a trouble */
#define REJOIN_AFTER_LOOKS 2   /* consecutive looks that found unassigned partitions */
#define REJOIN_PAUSE_MS 30000

int
placement_open(struct placement *placement, const struct config *config, const char *bootstrap,
               struct partition_list *partitions, struct metrics *metrics, struct error *error)
{
        *placement = (struct placement){.config = config,
                                        .metrics = metrics,
                                        .partitions = partitions,
                                        .n_partitions = -1};
        placement->locator = locator_new(config, bootstrap, error);
        return placement->locator == NULL ? -1 : 0;
}

void
placement_close(struct placement *placement)
{
        locator_free(placement->locator);
}

int
placement_set(struct placement *placement, const rd_kafka_topic_partition_list_t *assigned)
{
        struct partition_list *partitions = placement->partitions;

        for (size_t i = partitions->n; i > 0; i--) {
                if (rd_kafka_topic_partition_list_find(assigned, placement->config->deliveries_topic,
                                                       partitions->items[i - 1]->id) == NULL)
                        partition_remove(partitions, partitions->items[i - 1]);
        }
        for (int i = 0; i < assigned->cnt; i++) {
                if (partition_find(partitions, assigned->elems[i].partition) == NULL &&
                    partition_add(partitions, assigned->elems[i].partition) == NULL)
                        return -1;
        }
        placement_restart(placement);
        locator_set_assigned(placement->locator, assigned->cnt);
        placement->is_stale = 1;
        return 0;
}

void
placement_restart(struct placement *placement)
{
        int64_t now_ms = clock_monotonic_ms();

        placement->generation++;
        for (size_t i = 0; i < placement->partitions->n; i++) {
                struct partition *partition = placement->partitions->items[i];

                if (partition->stage == PARTITION_UNPLACED)
                        continue;
                partition->stage = PARTITION_UNPLACED;
                partition->retry_ms = now_ms;
                partition_rewind(partition);
        }
}

/* Create a dedup table, to be restored from restore_from on. Returns -1 when memory fails. */
static int
begin_restore(const struct position *position, const struct config *config, struct partition *partition)
{
        dedup_free(partition->dedup);
        partition->dedup = dedup_new(config->dedup_window_ms, position->complete_ms);
        partition->next = partition->reached = position->restore_from;
        partition->expired_from = position->decide_from;
        partition->known_to = 0;
        partition->witness = -1;
        return partition->dedup == NULL ? -1 : 0;
}

/* Whether the committed offset is this router's own: unchanged, or its last attempt. */
static int
is_own(const struct position *position, const struct partition *partition)
{
        return (position->decide_from == partition->decide_from &&
                position->routed_ms == partition->routed_ms) ||
               (position->decide_from == partition->tried_to && position->routed_ms == partition->tried_ms);
}

/*
 * Whether the dedup table may be kept although another router has committed: it contains no uncommitted
 * records, and the last record that this router committed can be looked up in the log.
 */
static int
has_witness(const struct position *position, const struct partition *partition)
{
        return partition->known_to <= partition->decide_from && partition->routed_ms >= 0 &&
               partition->decide_from > position->low && partition->decide_from <= position->decide_from;
}

/* Read the last record that this router committed again. */
static void
call_witness(struct partition *partition)
{
        partition->witness = partition->decide_from - 1;
        partition->witness_ms = partition->routed_ms;
        if (partition->next > partition->witness)
                partition->next = partition->witness;
}

/* Whether the log was truncated at a new offset; until a commit each answer reports the known truncation. */
static int
is_new_cut(const struct position *position, const struct partition *partition)
{
        return position->n_cut_off > 0 && partition->cut_at != position->decide_from;
}

/*
 * Whether the dedup table can be kept: no dropped entry is needed, and missing records are still in the log.
 */
static int
table_serves(const struct position *position, const struct partition *partition)
{
        return partition->dedup != NULL &&
               (position->n_cut_off > 0 ? !is_new_cut(position, partition)
                                        : is_own(position, partition) || has_witness(position, partition)) &&
               position->decide_from >= partition->expired_from && partition->next >= position->low &&
               dedup_covers(partition->dedup, partition->needed_ms);
}

static void
log_truncation(const struct position *position, struct metrics *metrics)
{
        log_error("Kafka has lost records that were routed: the log was cut off; routing resumes at the "
                  "first record appended since partition=%" PRId32 " offset=%" PRId64
                  " routed_up_to=%" PRId64,
                  position->partition, position->decide_from, position->decide_from + position->n_cut_off);
        metrics_count_truncation(metrics);
}

static void
log_waiting(const struct partition *partition)
{
        char quoted[LOG_QUOTED_SIZE];

        log_line(partition->trouble >= TROUBLE_NO_OFFSET ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                 "partition is waiting partition=%" PRId32 " cause=%s reason=%s", partition->id,
                 partition_trouble_name(partition->trouble), log_quote(partition->reason.text, quoted));
}

/* Note the trouble that keeps the partition from being placed. Returns 0. */
static int
keep_waiting(struct partition *partition, enum partition_trouble trouble, const char *reason, int64_t now_ms)
{
        int is_news = partition->trouble != trouble;

        /*
         * An unavailable log may return as another one. If only an output topic fails, the log is available.
         */
        if (trouble != TROUBLE_TOPIC)
                partition_forget_open(partition, now_ms);
        partition_unplace(partition, trouble, reason, PAUSE_MS, now_ms);
        if (is_news)
                log_waiting(partition);
        return 0;
}

/* Place a partition at a position, or note why that is impossible. Returns whether it is placed. */
static int
apply(const struct position *position, const struct config *config, struct partition *partition,
      int64_t now_ms)
{
        if (position->high >= 0)
                partition->high = position->high;
        if (position->trouble != TROUBLE_NONE)
                return keep_waiting(partition, position->trouble, position->error.text, now_ms);
        if (is_new_cut(position, partition) && partition->diverged_at < 0 &&
            (partition->trouble != TROUBLE_TRUNCATED || now_ms - partition->troubled_ms < CERTAIN_AFTER_MS))
                return keep_waiting(partition, TROUBLE_TRUNCATED,
                                    "the log ends before the committed offset, and has newer records",
                                    now_ms);
        if (!table_serves(position, partition)) {
                if (begin_restore(position, config, partition) != 0)
                        return keep_waiting(partition, TROUBLE_UNREACHABLE, "out of memory", now_ms);
        } else if (position->n_cut_off == 0 && !is_own(position, partition)) {
                call_witness(partition);
        }
        /* Read the record before the committed offset again, to verify that the log is the routed one. */
        if (partition->next > position->decide_from)
                partition->next = position->decide_from;
        if (position->routed_ms >= 0 && partition->next == position->decide_from &&
            partition->next > position->low)
                partition->next--;
        partition->decide_from = position->decide_from;
        partition->routed_ms = position->routed_ms;
        partition->cut_at = position->n_cut_off > 0 ? position->decide_from : -1;
        if (position->n_cut_off == 0)
                partition->diverged_at = -1;
        partition->topic[0] = '\0';
        partition->stage = PARTITION_PLACED;
        partition->placed_ms = now_ms;
        log_info("partition assigned partition=%" PRId32 " committed=%" PRId64 " reading_from=%" PRId64,
                 partition->id, partition->decide_from, partition->next);
        return 1;
}

static void
count_deleted(struct placement *placement, const struct position *position, struct partition *partition)
{
        if (position->n_deleted == 0 || position->low <= partition->counted_to)
                return;
        log_error(
            "records were deleted before they were routed: the retention is too short partition=%" PRId32
            " from=%" PRId64 " to=%" PRId64,
            position->partition, position->low - position->n_deleted, position->low - 1);
        metrics_count_deleted(placement->metrics,
                              (uint64_t)(partition->counted_to > position->low - position->n_deleted
                                             ? position->low - partition->counted_to
                                             : position->n_deleted));
        partition->counted_to = position->low;
}

static void
take_answers(struct placement *placement)
{
        size_t n;
        struct position *positions = locator_take(placement->locator, &n);

        for (size_t i = 0; positions != NULL && i < n; i++) {
                struct partition *partition = partition_find(placement->partitions, positions[i].partition);
                int is_cut;

                if (placement->asked_generation != placement->generation || partition == NULL ||
                    partition->stage != PARTITION_ASKED)
                        continue;
                is_cut = is_new_cut(&positions[i], partition);
                if (apply(&positions[i], placement->config, partition, clock_monotonic_ms())) {
                        count_deleted(placement, &positions[i], partition);
                        if (is_cut)
                                log_truncation(&positions[i], placement->metrics);
                        placement->is_stale = 1;
                }
        }
        free(positions);
}

/* Ask for the positions that are due. Open records must be committed first: the answer depends on them. */
static void
ask(struct placement *placement)
{
        const struct partition_list *partitions = placement->partitions;
        int64_t now_ms = clock_monotonic_ms();
        struct position_question *questions;
        size_t n = 0;

        if (locator_is_busy(placement->locator))
                return;
        questions = mem_alloc(partitions->n * sizeof(*questions));
        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                if (partition->stage != PARTITION_UNPLACED || partition->retry_ms > now_ms ||
                    partition_open(partition) > 0)
                        continue;
                partition->stage = PARTITION_ASKED;
                questions[n++] = position_question(partition);
        }
        if (n > 0) {
                locator_ask(placement->locator, questions, n);
                placement->asked_generation = placement->generation;
        }
        free(questions);
}

/* Assign the partitions with a position to the consumer. */
static void
assign(struct placement *placement, struct consumer *consumer)
{
        const struct partition_list *partitions = placement->partitions;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)partitions->n);
        char quoted[LOG_QUOTED_SIZE];
        struct error error;

        for (size_t i = 0; i < partitions->n; i++) {
                struct partition *partition = partitions->items[i];

                if (partition->stage != PARTITION_PLACED)
                        continue;
                partition->scan_next = -1;
                rd_kafka_topic_partition_list_add(list, placement->config->deliveries_topic, partition->id)
                    ->offset = partition->next;
        }
        placement->is_stale = consumer_assign(consumer, list, &error) != 0;
        if (placement->is_stale)
                log_warning("cannot assign partitions to the consumer reason=%s",
                            log_quote(error.text, quoted));
        rd_kafka_topic_partition_list_destroy(list);
}

void
placement_place(struct placement *placement, struct consumer *consumer)
{
        take_answers(placement);
        ask(placement);
        if (placement->is_stale)
                assign(placement, consumer);
}

int
placement_is_awaited(const struct placement *placement)
{
        return locator_is_busy(placement->locator);
}

static void
lose(struct placement *placement, struct partition *partition, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (partition->trouble != TROUBLE_READ)
                log_warning("reading a partition failed; looking up its position again partition=%" PRId32
                            " offset=%" PRId64 " reason=%s",
                            partition->id, partition->next, log_quote(reason, quoted));
        partition_unplace(partition, TROUBLE_READ, reason, PAUSE_MS, clock_monotonic_ms());
        placement->is_stale = 1;
}

void
placement_lose(struct placement *placement, int32_t id, const char *reason)
{
        struct partition *partition = partition_find(placement->partitions, id);

        if (partition != NULL && partition->stage == PARTITION_PLACED)
                lose(placement, partition, reason);
}

int
placement_end_scans(struct placement *placement, struct consumer *consumer)
{
        int64_t now_ms = clock_monotonic_ms();
        int is_scanning = 0;

        for (size_t i = 0; i < placement->partitions->n; i++) {
                struct partition *partition = placement->partitions->items[i];
                struct error error;

                if (partition->scan_next < 0)
                        continue;
                if (!partition_ends_scan(partition, now_ms))
                        is_scanning = 1;
                else if (consumer_seek(consumer, placement->config->deliveries_topic, partition->id,
                                       partition->next, &error) != 0)
                        lose(placement, partition, error.text);
        }
        return is_scanning;
}

/* Clear the trouble of partitions that have been read for a while. */
static void
settle(struct placement *placement)
{
        int64_t now_ms = clock_monotonic_ms();

        for (size_t i = 0; i < placement->partitions->n; i++) {
                struct partition *partition = placement->partitions->items[i];

                if (partition->stage == PARTITION_PLACED && partition->trouble != TROUBLE_NONE &&
                    partition->trouble != TROUBLE_NO_LEADER && partition->trouble != TROUBLE_NO_RECORDS &&
                    now_ms - partition->placed_ms >= SETTLED_AFTER_MS)
                        partition_settle(partition);
        }
}

/* Note missing leaders and records: librdkafka waits for them silently. */
static void
note_logs(struct placement *placement, const struct locator_view *view)
{
        int64_t now_ms = clock_monotonic_ms();

        if (placement->n_looks == view->number)
                return;
        placement->n_looks = view->number;
        for (size_t i = 0; i < placement->partitions->n; i++) {
                struct partition *partition = placement->partitions->items[i];
                const struct locator_log *log;
                int is_news;

                if ((size_t)partition->id >= view->n_logs)
                        continue;
                log = &view->logs[partition->id];
                is_news = partition_note_leader(partition, log->has_leader, now_ms);
                is_news |= partition_note_log_end(partition, log->end, placement->emptied_ms, now_ms);
                if (is_news)
                        log_waiting(partition);
        }
}

static void
note_growth(struct placement *placement, int32_t n)
{
        if (placement->n_partitions >= 0 && n > placement->n_partitions)
                log_error("partitions were added to %s: for dedup_window from now on, a repeat of an earlier "
                          "delivery may be published again before=%" PRId32 " now=%" PRId32,
                          placement->config->deliveries_topic, placement->n_partitions, n);
        if (n >= 0)
                placement->n_partitions = n;
}

/*
 * A coordinator assigns a static member that returns in time its former partitions (KIP-345), although
 * partitions were added meanwhile, and no member checks the topic again for minutes.
 */
static void
rejoin(struct placement *placement, struct consumer *consumer, const struct locator_unassigned *first,
       int n_looks)
{
        int64_t now_ms = clock_monotonic_ms();

        if (consumer == NULL || n_looks < REJOIN_AFTER_LOOKS ||
            (placement->rejoined_ms != 0 && now_ms - placement->rejoined_ms < REJOIN_PAUSE_MS))
                return;
        log_warning("partition is assigned to no router; rejoining the group partition=%" PRId32
                    " waiting=%" PRId64,
                    first->partition, first->waiting);
        placement->rejoined_ms = now_ms;
        consumer_rejoin(consumer);
}

void
placement_look(struct placement *placement, struct consumer *consumer, struct partition_status *status)
{
        struct locator_view view;

        locator_view(placement->locator, &view);
        settle(placement);
        note_logs(placement, &view);
        note_growth(placement, view.n_partitions);
        partition_status_read(status, placement->partitions, consumer, placement->config->deliveries_topic,
                              view.unassigned, view.n_unassigned, placement->metrics);
        if (view.n_unassigned > 0)
                rejoin(placement, consumer, view.unassigned, view.n_looks);
        locator_view_clear(&view);
}
