#ifndef ROUTER_PARTITION_H
#define ROUTER_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/dedup.h"

/*
 * What a router knows of one partition of `deliveries`. Records below `decide_from` have been routed, by this router or
 * another: they are only remembered. Those from there on are decided.
 *
 *   restore start ... remembered ... | decide_from = committed offset ... decided, open ... | next
 */
struct partition {
        int32_t id;
        struct dedup *dedup;
        int64_t decide_from; /* the committed offset */
        int64_t next;        /* the offset to read next */
        int64_t last_ms;     /* timestamp of the record before next */
        int64_t
            routed_ms; /* timestamp that the record before decide_from had when it was routed; -1: not known */
        int64_t expired_from; /* the table has forgotten what only records below this offset need */
        int64_t
            needed_ms; /* records from this time on are to be judged; INT64_MAX: they rise, as they should */
        int64_t caught_up_ms; /* since the epoch: when no record was seen to wait last; 0: never */
        int64_t accepted_gap; /* an offset before which some are missing, read twice so; -1: none */
};

/* The partitions that a router has been given, in no order. */
struct partition_list {
        struct partition *items;
        size_t n;
};

/* The partition with this id, or NULL. */
struct partition *partition_find(const struct partition_list *list, int32_t id);

/* Add a partition without a table. Pointers to others become invalid. Returns NULL when memory fails. */
struct partition *partition_add(struct partition_list *list, int32_t id) MUST_CHECK;

/* Forget one and its table. The last takes its place. */
void partition_remove(struct partition_list *list, struct partition *partition);
void partition_clear(struct partition_list *list);

/**
 * partition_accepts(partition, offset):
 * Whether a record at an offset, not below next, may be taken. Offsets follow each other in `deliveries`; a gap is taken
 * only when reading again shows it again (control records of a foreign transactional producer, records deleted).
 */
int partition_accepts(struct partition *partition, int64_t offset) MUST_CHECK;

/* Whether a record below decide_from can be the one that was routed: the last of them has a known timestamp. */
int partition_recognises(const struct partition *partition, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/* The record at an offset, with its timestamp, has been decided or remembered. */
void partition_advance(struct partition *partition, int64_t offset, int64_t timestamp_ms);

/**
 * partition_can_judge(partition, timestamp_ms):
 * Whether the table knows all that a record at that time needs. If not, it is noted that the table must be read back from
 * further on; until time has moved on by two windows nothing that is younger is forgotten again.
 */
int partition_can_judge(struct partition *partition, int64_t timestamp_ms) MUST_CHECK;

/* What was decided up to next has been committed: it will not be decided again. */
void partition_committed(struct partition *partition);

/* How many records are decided and not committed: what the open batch would commit. */
int64_t partition_open(const struct partition *partition);

/**
 * partition_waiting_ms(partition, lag, now_ms):
 * How long the oldest of lag waiting records has waited at most, in milliseconds; 0 when none waits. It came after the
 * last that was routed, and after the partition was last seen without any, which is noted here. now_ms is since the epoch.
 */
int64_t partition_waiting_ms(struct partition *partition, int64_t lag, int64_t now_ms);

#endif
