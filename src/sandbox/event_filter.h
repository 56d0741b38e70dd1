#ifndef SANDBOX_EVENT_FILTER_H
#define SANDBOX_EVENT_FILTER_H

/*
 * The members of a subscription's `events`: a kind, `*` for every kind, or `reporting_batch.*` for that family, whose
 * kinds the documentation does not name.
 */

/* Whether the text can stand in `events`. */
int event_filter_is_known(const char *text);

/* The known kind that a misspelt one most likely meant, or NULL. */
const char *event_filter_suggest(const char *text);

int event_filter_matches(const char *filter, const char *kind);

/* Whether the text can be the kind of an event: 1 to 128 of [0-9A-Za-z._-]. It need not be a documented one. */
int event_is_kind(const char *text);

#endif
