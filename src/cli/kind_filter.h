#ifndef CLI_KIND_FILTER_H
#define CLI_KIND_FILTER_H

#include <stddef.h>

#include "model/topic_table.h"

/*
 * Kinds as they are asked for: exact, `invoice.accepted`; a pattern, `invoice.*`, which means all that begin with
 * `invoice.` and go on; or `*`, all.
 */

/* Whether a kind of len bytes is meant. */
int kind_filter_matches(const char *asked, const char *kind, size_t len);

/* Whether the topic of a rule may have kinds that are meant. */
int kind_filter_concerns(const char *asked, const struct topic_table *topics, const struct topic_rule *rule);

#endif
