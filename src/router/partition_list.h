#ifndef ROUTER_PARTITION_LIST_H
#define ROUTER_PARTITION_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "router/partition.h"

/* Partitions that are read by one consumer, unordered. */
struct partition_list {
        struct partition **items;
        size_t n;
        int64_t emptied_ms; /* monotonic: when the consumer's queue was last empty */
};

/*
 * Return the partition with this id, or NULL. It moves to the front, where the next call looks first: records
 * come in runs.
 */
struct partition *partition_find(struct partition_list *list, int32_t id);

/* Add a partition without a dedup table or a position. Returns NULL when memory fails. */
struct partition *partition_add(struct partition_list *list, int32_t id) MUST_CHECK;

/* Remove a partition and its dedup table. The last one takes its place. */
void partition_remove(struct partition_list *list, struct partition *partition);
void partition_clear(struct partition_list *list);

/*
 * Move a partition to another list, with its dedup table but without its position, and without what is not
 * committed. now_ms is monotonic. Returns -1 when memory fails; then it stays.
 */
int partition_move(struct partition_list *from, struct partition_list *to, struct partition *partition,
                   int64_t now_ms) MUST_CHECK;

/* A partition of the list, if it is there, has been read up to its end, the given offset. */
void partition_list_note_end(struct partition_list *list, int32_t id, int64_t end);

#endif
