#include "router/table.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/crash.h"
#include "base/log.h"

/*
 * Entries in memory of all partitions together, before they are written: after a crash that many records
 * must be read from the log, which takes about two seconds.
 */
#define ENTRIES_IN_MEMORY 400000
#define MIN_ENTRIES 8192
#define MAX_ENTRIES 65536

/* What restoring a table from the log takes; see CAPACITY in gatepost-guide(7). */
#define MANY_RECORDS 500000
#define RECORDS_A_SECOND 250000
#define BYTES_A_RECORD 44
#define BYTES_A_WRITTEN_RECORD 2

/* Whether the committed offset is this router's own: unchanged, or its last attempt. */
static int
is_own(const struct position *position, const struct partition *partition)
{
        return (position->decide_from == partition->decide_from &&
                position->routed_ms == partition->routed_ms) ||
               (position->decide_from == partition->tried_to && position->routed_ms == partition->tried_ms);
}

/*
 * The log was seen to be another one than the table was read from, and another router has committed in it
 * since.
 */
static int
has_diverged(const struct partition *partition)
{
        return partition->diverged_at >= 0;
}

/*
 * Whether the dedup table may be kept although another router has committed: it contains no uncommitted
 * records, and the last record that this router committed can be looked up in the log.
 */
static int
has_anchor(const struct position *position, const struct partition *partition)
{
        return partition->known_to <= partition->decide_from && partition->routed_ms >= 0 &&
               partition->decide_from > position->low && partition->decide_from <= position->decide_from;
}

int
table_is_cut_off(const struct position *position, const struct partition *partition)
{
        return position->n_cut_off > 0 && partition->cut_at != position->decide_from;
}

int
table_serves(const struct position *position, const struct partition *partition)
{
        return partition->dedup != NULL && dedup_trouble(partition->dedup) == DEDUP_SOUND &&
               (position->n_cut_off > 0 ? !table_is_cut_off(position, partition)
                                        : !has_diverged(partition) && (is_own(position, partition) ||
                                                                       has_anchor(position, partition))) &&
               position->decide_from >= partition->expired_from && partition->next >= position->low &&
               dedup_covers(partition->dedup, partition->needed_ms);
}

void
table_confirm(const struct position *position, struct partition *partition)
{
        if (is_own(position, partition) || partition->anchor >= 0)
                return; /* an earlier anchor, not read yet, proves the log as far as the table goes */
        partition->anchor = partition->decide_from - 1;
        partition->anchor_ms = partition->routed_ms;
        if (partition->next > partition->anchor)
                partition->next = partition->anchor;
}

/* Fill the table from files, unless the log was cut off or the files may lack what is needed. */
static void
read_state(const struct position *position, const struct config *config, struct state *state,
           struct partition *partition)
{
        const int64_t window_ms = (int64_t)config->dedup_window_ms;
        const struct state_wanted wanted = {.partition = partition->id,
                                            .low = position->low,
                                            .from = position->restore_from,
                                            .to = position->decide_from,
                                            .complete_ms = position->routed_ms - window_ms};
        int64_t next;

        if (position->n_cut_off > 0)
                state_discard(state, partition->id, "the log was cut off");
        else if (position->routed_ms < 0)
                state_discard(state, partition->id, "the time of the last routed record is not known");
        else if (partition->needed_ms != INT64_MAX)
                state_discard(state, partition->id, "a broker's clock was wrong");
        else if (state_restore(state, &wanted, partition->dedup, &next))
                partition->next = partition->reached = next;
}

int
table_restore(const struct position *position, const struct config *config, struct state *state,
              struct partition *partition)
{
        dedup_free(partition->dedup);
        partition->dedup = dedup_new(config->dedup_window_ms, position->complete_ms);
        partition->next = partition->reached = position->restore_from;
        partition->expired_from = position->decide_from;
        partition->known_to = 0;
        partition->anchor = -1;
        if (partition->dedup == NULL)
                return -1;
        if (state != NULL) {
                dedup_begin_at(partition->dedup, position->restore_from);
                read_state(position, config, state, partition);
        }
        return 0;
}

void
table_announce(const struct partition_list *partitions, const struct state *state)
{
        int64_t n = 0;

        for (size_t i = 0; i < partitions->n; i++)
                n += partition_to_restore(partitions->items[i]);
        if (n < (int64_t)crash_limit("GATEPOST_MANY_RECORDS", MANY_RECORDS))
                return;
        log_notice("dedup tables must be restored from the log records=%" PRId64 " about_seconds=%" PRId64
                   " about_mib=%" PRId64,
                   n, n / RECORDS_A_SECOND,
                   n * (state == NULL ? BYTES_A_RECORD : BYTES_A_WRITTEN_RECORD) >> 20);
}

const char *
table_fault(struct state *state, struct partition *partition, int64_t now_ms)
{
        static const char *const faults[] = {
            [DEDUP_SOUND] = NULL,
            [DEDUP_OTHER_LOG] = "the state on disk is of another log; restoring the dedup table",
            [DEDUP_DAMAGED] = "the state on disk is damaged; restoring the dedup table",
        };
        const char *fault = partition->dedup == NULL ? NULL : faults[dedup_trouble(partition->dedup)];

        if (fault == NULL)
                return NULL;
        state_discard(state, partition->id, fault);
        partition_forget_table(partition, now_ms);
        return fault;
}

/* The tables that the files belong to. */
struct tables {
        const struct partition_list *lists[2];
};

static struct dedup *
find(void *arg, int32_t id, uint64_t number)
{
        const struct tables *tables = arg;

        for (size_t l = 0; l < ARRAY_LEN(tables->lists); l++) {
                for (size_t i = 0; i < tables->lists[l]->n; i++) {
                        const struct partition *partition = tables->lists[l]->items[i];

                        if (partition->id == id && partition->dedup != NULL &&
                            dedup_number(partition->dedup) == number)
                                return partition->dedup;
                }
        }
        return NULL;
}

/*
 * A table can be written when it has committed records only, and of one log: while it is restored without
 * interruption, or when the record before decide_from has proved that, whose time must be known from the
 * commit. A followed partition rests without a position.
 */
static int
is_committed(const struct partition *partition)
{
        int is_known = partition->stage == PARTITION_POSITIONED ||
                       (partition->is_followed && partition->trouble == TROUBLE_NONE);
        int is_proved =
            partition->next == partition->decide_from && partition->bare_offset != partition->decide_from;
        int is_of_one_log = partition->anchor < 0 && (!partition->is_continued || is_proved);

        return partition->dedup != NULL && is_known && is_of_one_log &&
               partition->next <= partition->decide_from && partition->known_to <= partition->next;
}

static void
tend(struct state *state, struct tables tables, size_t at_least)
{
        state_take_results(state, find, &tables);
        for (size_t l = 0; l < ARRAY_LEN(tables.lists); l++) {
                for (size_t i = 0; i < tables.lists[l]->n; i++) {
                        struct partition *partition = tables.lists[l]->items[i];

                        if (is_committed(partition))
                                state_tend(state, partition->id, partition->dedup, partition->next, at_least);
                }
        }
}

void
table_tend(struct state *state, const struct partition_list *partitions,
           const struct partition_list *followed)
{
        size_t at_least, n = partitions->n + followed->n;

        if (state == NULL || n == 0)
                return;
        at_least = ENTRIES_IN_MEMORY / n;
        if (at_least > MAX_ENTRIES)
                at_least = MAX_ENTRIES;
        if (at_least < MIN_ENTRIES)
                at_least = MIN_ENTRIES;
        tend(state, (struct tables){{partitions, followed}}, crash_limit("GATEPOST_STATE_ENTRIES", at_least));
}

void
table_save(struct state *state, const struct partition_list *partitions,
           const struct partition_list *followed)
{
        if (state != NULL)
                tend(state, (struct tables){{partitions, followed}}, 1);
}
