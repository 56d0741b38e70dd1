#ifndef SANDBOX_EVENT_FILTER_H
#define SANDBOX_EVENT_FILTER_H

/*
 * An event has a kind, such as invoice.accepted. A webhook lists event filters: a kind, `*` for every kind,
 * or `reporting_batch.*` for that family, whose kinds the service's documentation does not list.
 */

/*
 * Return whether the text can be an event kind: 1 to 128 characters of [0-9A-Za-z._-]. It need not be
 * documented.
 */
int event_filter_is_kind(const char *text);

/* Return whether the text is a valid event filter. */
int event_filter_is_known(const char *text);

/* Return the known filter closest to a misspelt one, or NULL. */
const char *event_filter_suggest(const char *text);

int event_filter_matches(const char *filter, const char *kind);

#endif
