#include "router/partition.h"

#include <inttypes.h>
#include <stdlib.h>

#define REFUSED_AFTER_MS 10000
#define PAUSE_MAX_MS 30000
/* Records of the same fetch follow immediately; records that are appended meanwhile would follow forever. */
#define SCAN_MS 10
/*
 * Longer than a successful fetch takes, even on slow disks and networks; its time limit in librdkafka is 60
 * s.
 */
#define UNREAD_AFTER_MS 30000

const char *
partition_trouble_name(enum partition_trouble trouble)
{
        static const char *const names[TROUBLE_N] = {
            [TROUBLE_NONE] = "",
            [TROUBLE_UNREACHABLE] = "unreachable",
            [TROUBLE_NO_LEADER] = "no-leader",
            [TROUBLE_NO_RECORDS] = "no-records",
            [TROUBLE_READ] = "unreadable",
            [TROUBLE_TOPIC] = "output-topic",
            [TROUBLE_TRUNCATED] = "truncated",
            [TROUBLE_NO_OFFSET] = "no-offset",
            [TROUBLE_BEYOND_END] = "beyond-end",
            [TROUBLE_OTHER_LOG] = "other-log",
        };

        return names[trouble];
}

const char *
partition_state_name(enum partition_state state)
{
        static const char *const names[PARTITION_N_STATES] = {
            [PARTITION_ROUTING] = "routing",       [PARTITION_RESTORING] = "restoring",
            [PARTITION_WAITING] = "waiting",       [PARTITION_REFUSED] = "refused",
            [PARTITION_UNASSIGNED] = "unassigned", [PARTITION_STANDBY] = "standby",
        };

        return names[state];
}

void
partition_void_position(struct partition *partition, enum partition_trouble trouble, const char *reason,
                        int64_t pause_ms, int64_t now_ms)
{
        if (partition->trouble != trouble)
                partition->troubled_ms = now_ms;
        partition->trouble = trouble;
        partition->reason.text[0] = '\0';
        if (reason != NULL)
                (void)error_set(&partition->reason, "%s", reason);
        for (int i = 0; i < partition->n_retries && pause_ms < PAUSE_MAX_MS; i++)
                pause_ms *= 2;
        if (trouble != TROUBLE_NONE)
                partition->n_retries++;
        partition->retry_ms = now_ms + (pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
        partition->stage = PARTITION_UNPOSITIONED;
        partition->scan_next = -1;
        if (trouble != TROUBLE_NONE)
                partition->n_gaps = 0; /* it may return as another log */
        partition->origin = (struct consumer_origin){0};
        partition->changed_at = -1;
}

void
partition_rewind(struct partition *partition)
{
        if (partition->next > partition->decide_from)
                partition->next = partition->decide_from;
        partition->reached = partition->next;
        partition->changed_at = -1;
}

void
partition_settle(struct partition *partition)
{
        partition->trouble = TROUBLE_NONE;
        partition->reason.text[0] = '\0';
        partition->n_retries = 0;
}

void
partition_forget_topic(struct partition *partition)
{
        if (partition->topic[0] == '\0')
                return;
        partition->topic[0] = '\0';
        partition->retry_ms = 0;
}

void
partition_forget_table(struct partition *partition, int64_t now_ms)
{
        dedup_free(partition->dedup);
        partition->dedup = NULL;
        partition->known_to = 0;
        partition->anchor = -1;
        partition->n_gaps = 0;
        if (partition->stage == PARTITION_POSITIONED)
                partition_void_position(partition, TROUBLE_NONE, NULL, 0, now_ms);
}

void
partition_forget_open(struct partition *partition, int64_t now_ms)
{
        if (partition->known_to > partition->decide_from)
                partition_forget_table(partition, now_ms);
}

enum partition_state
partition_state(const struct partition *partition, int64_t now_ms)
{
        if (partition->is_followed)
                return PARTITION_STANDBY;
        if (partition->trouble >= TROUBLE_NO_OFFSET && partition->stage != PARTITION_POSITIONED &&
            now_ms - partition->troubled_ms >= REFUSED_AFTER_MS)
                return PARTITION_REFUSED;
        if (partition->trouble != TROUBLE_NONE)
                return PARTITION_WAITING;
        if (partition->stage != PARTITION_POSITIONED || partition->next < partition->decide_from)
                return PARTITION_RESTORING;
        return PARTITION_ROUTING;
}

int
partition_accepts(const struct partition *partition, int64_t offset)
{
        if (offset == partition->next)
                return 1;
        for (size_t i = 0; i < partition->n_gaps; i++) {
                if (partition->gaps[i].from == partition->next && partition->gaps[i].to == offset)
                        return 1;
        }
        return 0;
}

void
partition_scan(struct partition *partition, int64_t offset, int64_t now_ms)
{
        if (partition->scan_next < 0) {
                partition->scan_next = partition->next;
                partition->scan_ms = now_ms;
                partition->n_gaps = 0;
        }
        if (offset > partition->scan_next && partition->n_gaps < PARTITION_GAPS_MAX)
                partition->gaps[partition->n_gaps++] = (struct partition_gap){partition->scan_next, offset};
        partition->scan_next = offset + 1;
}

int
partition_ends_scan(struct partition *partition, int64_t now_ms)
{
        if (partition->scan_next < 0 ||
            (now_ms - partition->scan_ms < SCAN_MS && partition->n_gaps < PARTITION_GAPS_MAX))
                return 0;
        partition->scan_next = -1;
        return 1;
}

int
partition_expects(const struct partition *partition, int64_t offset, const struct consumer_origin *origin)
{
        if (!partition->origin.is_known && offset >= partition->decide_from)
                return consumer_origin_is_certain(origin);
        return consumer_origin_is(&partition->origin, origin);
}

int
partition_allows_change(const struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        return partition->changed_at == offset && partition->changed_ms == timestamp_ms;
}

void
partition_note_change(struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        partition->changed_at = offset;
        partition->changed_ms = timestamp_ms;
}

void
partition_note_origin(struct partition *partition, const struct consumer_origin *origin)
{
        if (!partition->origin.is_known) {
                partition->origin = *origin;
                partition->origin.connection = origin->earliest;
        }
        partition->known_origin = partition->origin;
}

void
partition_doubt_origin(struct partition *partition)
{
        partition->origin.connection = 0; /* the first one is 1 */
}

int
partition_is_unpublishable(const struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        return partition->unpublishable == offset && partition->unpublishable_ms == timestamp_ms;
}

int
partition_recognises(const struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        return offset != partition->decide_from - 1 || partition->routed_ms < 0 ||
               timestamp_ms == partition->routed_ms;
}

int
partition_confirms(struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        int confirms;

        if (partition->anchor < 0 || offset < partition->anchor)
                return 1;
        confirms = offset == partition->anchor && timestamp_ms == partition->anchor_ms;
        partition->anchor = -1;
        return confirms;
}

void
partition_try(struct partition *partition)
{
        partition->tried_to = partition->next;
        partition->tried_ms = partition->last_ms;
}

void
partition_advance(struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        partition->next = offset + 1;
        if (partition->reached < partition->next)
                partition->reached = partition->next;
        partition->last_ms = timestamp_ms;
        if (partition->next == partition->decide_from && partition->routed_ms < 0 && partition->cut_at < 0) {
                partition->routed_ms = partition->bare_ms = timestamp_ms;
                partition->bare_offset = partition->next;
        }
}

int
partition_can_judge(struct partition *partition, int64_t timestamp_ms)
{
        if (dedup_covers(partition->dedup, timestamp_ms))
                return 1;
        if (partition->needed_ms > timestamp_ms)
                partition->needed_ms = timestamp_ms;
        return 0;
}

/* Drop what no record from next on needs. */
static void
expire(struct partition *partition)
{
        partition->expired_from = partition->next;
        if (partition->dedup == NULL)
                return; /* it was of no use any more while the batch was open */
        if (partition->last_ms - partition->needed_ms > 2 * (int64_t)dedup_window_ms(partition->dedup))
                partition->needed_ms = INT64_MAX;
        dedup_expire(partition->dedup,
                     partition->needed_ms < partition->last_ms ? partition->needed_ms : partition->last_ms);
}

void
partition_committed(struct partition *partition)
{
        if (partition_open(partition) == 0)
                return;
        partition_settle(partition);
        partition->topic[0] = '\0';
        partition->decide_from = partition->next;
        partition->routed_ms = partition->last_ms;
        partition->diverged_at = partition->cut_at = partition->told_cut_at = partition->bare_offset = -1;
        expire(partition);
}

void
partition_followed(struct partition *partition)
{
        if (partition->stage != PARTITION_POSITIONED || partition->next < partition->decide_from)
                return;
        partition_settle(partition);
        expire(partition);
}

void
partition_note_end(struct partition *partition, int64_t end)
{
        if (partition->stage == PARTITION_POSITIONED && partition->scan_next < 0 && end >= partition->next)
                partition->end = (struct partition_gap){partition->next, end};
}

int
partition_is_at_end(const struct partition *partition)
{
        return partition->next == partition->end.from && partition->end.to >= partition->decide_from;
}

int
partition_note_leader(struct partition *partition, int has_leader, int64_t now_ms)
{
        if (partition->stage != PARTITION_POSITIONED)
                return 0;
        if (has_leader && partition->trouble == TROUBLE_NO_LEADER)
                partition_settle(partition);
        if (has_leader || partition->trouble != TROUBLE_NONE)
                return 0;
        partition->trouble = TROUBLE_NO_LEADER;
        partition->troubled_ms = now_ms;
        (void)error_set(&partition->reason, "the partition has no leader");
        return 1;
}

/* Explain why no records of a partition arrive. */
static void
explain_no_records(struct partition *partition, int64_t end, int64_t read_to)
{
        if (end < 0)
                (void)error_set(
                    &partition->reason,
                    "its leader has not reported the end of the log for %d s, and no record has come from "
                    "offset %" PRId64 ": check the network path to the leader",
                    UNREAD_AFTER_MS / 1000, read_to);
        else
                (void)error_set(
                    &partition->reason,
                    "the log ends at offset %" PRId64 " but no record has come from offset %" PRId64
                    " for %d s: look for a delivery larger than receive.message.max.bytes in [kafka], or "
                    "for a network path to the broker that loses large packets",
                    end, read_to, UNREAD_AFTER_MS / 1000);
}

/*
 * Whether its log has ended before the committed offset twice in a row. A single answer may predate the
 * commit.
 */
static int
ends_short(struct partition *partition, int64_t end)
{
        int is_short = partition->stage == PARTITION_POSITIONED && end >= 0 && end < partition->decide_from;
        int was_short = partition->short_of == partition->decide_from;

        partition->short_of = is_short && !was_short ? partition->decide_from : -1;
        return is_short && was_short;
}

int
partition_note_log_end(struct partition *partition, int64_t end, int64_t emptied_ms, int64_t now_ms)
{
        int64_t read_to = partition->reached == partition->end.from ? partition->end.to : partition->reached;
        int is_read = (end >= 0 && end <= read_to) ||
                      (partition->is_followed && partition->next >= partition->decide_from);

        if (end >= 0)
                partition->high = end;
        if (ends_short(partition, end))
                partition_void_position(partition, TROUBLE_NONE, NULL, 0, now_ms);
        if (partition->stage != PARTITION_POSITIONED || partition->awaits_turn || is_read ||
            read_to != partition->unread_from) {
                partition->unread_from = read_to;
                partition->unread_ms = now_ms;
                if (partition->stage == PARTITION_POSITIONED && partition->trouble == TROUBLE_NO_RECORDS)
                        partition_settle(partition);
                return 0;
        }
        if (partition->trouble != TROUBLE_NONE || emptied_ms - partition->unread_ms < UNREAD_AFTER_MS)
                return 0;
        partition->trouble = TROUBLE_NO_RECORDS;
        partition->troubled_ms = now_ms;
        explain_no_records(partition, end, read_to);
        return 1;
}

int64_t
partition_lag(const struct partition *partition)
{
        int64_t from =
            partition->decide_from == partition->end.from ? partition->end.to : partition->decide_from;

        return partition->high > from ? partition->high - from : 0;
}

int64_t
partition_to_restore(const struct partition *partition)
{
        return partition->stage == PARTITION_POSITIONED && partition->next < partition->decide_from
                   ? partition->decide_from - partition->next
                   : 0;
}

int64_t
partition_open(const struct partition *partition)
{
        return partition->next > partition->decide_from ? partition->next - partition->decide_from : 0;
}

int64_t
partition_waiting_ms(struct partition *partition, int64_t lag, int64_t now_ms)
{
        int64_t since_ms = partition->routed_ms >= 0 ? partition->routed_ms : partition->last_ms;

        if (lag == 0)
                partition->caught_up_ms = now_ms;
        if (partition->caught_up_ms > since_ms)
                since_ms = partition->caught_up_ms;
        return lag > 0 && since_ms > 0 && now_ms > since_ms ? now_ms - since_ms : 0;
}
