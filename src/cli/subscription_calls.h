#ifndef CLI_SUBSCRIPTION_CALLS_H
#define CLI_SUBSCRIPTION_CALLS_H

#include <stddef.h>

#include <yajl/yajl_gen.h>

#include "base/compiler.h"
#include "cli/api_client.h"
#include "cli/subscription_args.h"
#include "model/service_answer.h"

/* The calls of the service about subscriptions. command is the command's name, for messages. */

/* Ask for all. Returns 0, or an exit status after saying why; subscription_views_clear() in either case. */
int subscription_calls_list(struct api_client *client, const char *command,
                            struct subscription_views *views) MUST_CHECK;

/* Remove one. That it is gone already is told by *was_there, and is no failure. Returns 0, or an exit status after saying why. */
int subscription_calls_remove(struct api_client *client, const char *command, const char *id,
                              int *was_there) MUST_CHECK;

/* Whether two URLs lead to the same place, and whether a subscription shows these events, in whatever order and however often. */
int subscription_calls_same_url(const char *a, const char *b);
int subscription_calls_same_events(const struct subscription_view *view, char *const *events, size_t n);

/* Write a subscription to stdout: its events with commas; all of it in a line; and as the members of an object that is open. */
void subscription_calls_print_events(const struct subscription_view *view);
void subscription_calls_print(const struct subscription_view *view);
void subscription_calls_members(yajl_gen json, const struct subscription_view *view);

#endif
