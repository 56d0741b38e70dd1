#ifndef ROUTER_TABLE_H
#define ROUTER_TABLE_H

#include "base/compiler.h"
#include "config/config.h"
#include "dedup/state.h"
#include "router/partition_list.h"
#include "router/position.h"

/*
 * The dedup table of a partition, and its files in the state directory: whether the table can be kept when
 * the partition gets a position, how it is restored, and when it is written. state is NULL without such a
 * directory.
 */

/* Whether the log was truncated at a new offset; until a commit each answer reports the known truncation. */
int table_is_cut_off(const struct position *position, const struct partition *partition) MUST_CHECK;

/*
 * Whether the dedup table can be kept: no dropped entry is needed, and missing records are still in the log.
 */
int table_serves(const struct position *position, const struct partition *partition) MUST_CHECK;

/*
 * If the committed offset is not this router's own, let the last record that it committed be read again,
 * which shows whether the table is of this log.
 */
void table_confirm(const struct position *position, struct partition *partition);

/*
 * Create a dedup table, from files as far as possible; the records from partition->next on are still to be
 * read. Returns -1 when memory fails.
 */
int table_restore(const struct position *position, const struct config *config, struct state *state,
                  struct partition *partition) MUST_CHECK;

/*
 * Log what restoring them takes, if that is much: records, time and memory; warn if the memory may not be
 * enough.
 */
void table_announce(const struct partition_list *partitions, const struct state *state);

/* Return why the table is of no use any more, after deleting it and its files; or NULL if it is sound. */
const char *table_fault(struct state *state, struct partition *partition, int64_t now_ms) MUST_CHECK;

/*
 * After a commit, and from time to time: write what is due. A table that is restored is written meanwhile,
 * since it would be in memory as a whole otherwise.
 */
void table_tend(struct state *state, const struct partition_list *partitions,
                const struct partition_list *followed);

/* Write everything that is committed, because the router ends. */
void table_save(struct state *state, const struct partition_list *partitions,
                const struct partition_list *followed);

#endif
