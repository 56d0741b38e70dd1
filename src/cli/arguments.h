#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/topic_table.h"

/* Arguments that several commands take: a time, a file, a kind of event. */

/**
 * arguments_time(text, time_ms, error):
 * Parse an age, such as 2h, or a time in UTC, such as 2026-11-21T03:04:05Z, that is not in the future.
 * Returns 0 and milliseconds since the epoch, or -1 with the reason.
 */
int arguments_time(const char *text, int64_t *time_ms, struct error *error) MUST_CHECK;

/**
 * arguments_read(file, len, error):
 * Read a file, or standard input when file is "-". Returns *len bytes and a zero after them, which the caller
 * frees; NULL with the reason, which names the file, if it cannot be read or is larger than 128 MiB.
 */
char *arguments_read(const char *file, size_t *len, struct error *error) MUST_CHECK;

/**
 * arguments_kind_matches(filter, kind, len):
 * Return whether a filter matches a kind of len bytes. A filter is a kind, `invoice.accepted`; a prefix,
 * `invoice.*`, which matches longer kinds that begin with `invoice.`; or `*`, which matches all.
 */
int arguments_kind_matches(const char *filter, const char *kind, size_t len);

/* Return whether the topic of a rule may hold events of a kind that the filter matches. */
int arguments_kind_may_match(const char *filter, const struct topic_table *topics,
                             const struct topic_rule *rule);

#endif
