#ifndef CLI_SUBSCRIPTION_H
#define CLI_SUBSCRIPTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/json.h"
#include "cli/api_client.h"
#include "cli/service_answer.h"
#include "config/config.h"

/* Arguments of the commands about subscriptions. */
struct subscription_args {
        const char *url;
        char **events;
        size_t n_events;
        const char *secret_file;
        const char *id;
        uint64_t timeout_ms;
        int as_json;
        int dry_run;
        int rotate;
};

/* Webhook subscriptions with the service. */

/*
 * List all. Returns 0, or an exit status after printing why; call subscription_views_clear() in either
 * case.
 */
int subscription_list(struct api_client *client, struct subscription_views *views) MUST_CHECK;

/*
 * Remove one. *was_there is 0 if it did not exist, which is no failure. Returns 0, or an exit status after
 * printing why.
 */
int subscription_remove(struct api_client *client, const char *id, int *was_there) MUST_CHECK;

/**
 * subscription_payload(args, config, len, status):
 * Make the JSON that registers a subscription, with the secret from its file. Warns if no source has that
 * secret. Returns *len bytes, to be released with secrets_free(); NULL, with the exit status, after
 * printing why.
 */
char *subscription_payload(const struct subscription_args *args, const struct config *config, size_t *len,
                           int *status) MUST_CHECK;

/* Return whether two URLs are equivalent. */
int subscription_same_url(const char *a, const char *b);

/* Return whether a subscription has exactly these events, in any order and any number of times. */
int subscription_same_events(const struct subscription_view *view, char *const *events, size_t n);

/*
 * Return whether an event of a webhook has all kinds of another one: * has all, and x.* those that begin with
 * x and a dot, but not x. Either may be a pattern.
 */
int subscription_covers(const char *event, const char *other);

/* Return whether the events shown cover an event, which may be a pattern. */
int subscription_shows(const struct subscription_view *view, const char *event);

/* Return the narrower of two events, which may be patterns, if one covers the other, else NULL. */
const char *subscription_common_event(const char *one, const char *other);

/* Return the URL for people, without what may be a password or a token; NULL: unknown. */
char *subscription_shown_url(const struct subscription_view *view) MUST_CHECK;

/* Write to stdout: the events, separated by commas; the subscription, on one line. */
void subscription_print_events(const struct subscription_view *view);
void subscription_print(const struct subscription_view *view);

/* Write a subscription as members of the open object. */
void subscription_put_members(struct json_writer *json, const struct subscription_view *view);

#endif
