#ifndef CLI_WEBHOOK_H
#define CLI_WEBHOOK_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "cli/service.h"

/*
 * Webhooks as the service shows them. It does not document how, so every likely form is read: a list is an
 * array, or the first one in an object; an id is a string or a number. Nothing of it is trusted.
 */

/* One webhook, with values that belong to an answer. */
struct registered_webhook {
        const char *id;
        const char *url;
        const struct json_value *events; /* an array; NULL: the service shows none */
        const char *created;             /* createdAt, or NULL */
};

struct webhooks {
        struct registered_webhook *items;
        size_t n;
        struct json_value *answer;
};

/**
 * webhook_list(config, webhooks, failure):
 * List all; each has an id and a URL. Return 0, or an exit status with the failure; call webhook_list_clear()
 * in either case.
 */
int webhook_list(const struct config *config, struct webhooks *webhooks,
                 struct service_failure *failure) MUST_CHECK;
void webhook_list_clear(struct webhooks *webhooks);

/* Return the id of the webhook in the answer to its registration, or NULL. */
const char *webhook_id_in(const struct json_value *answer);

/* Remove one. Return 0, EX_NOINPUT if there is none of this ID, or another exit status with the failure. */
int webhook_remove(const struct config *config, const char *id, struct service_failure *failure) MUST_CHECK;

/* Return whether two URLs are equivalent: the service may write the host or the port in another way. */
int webhook_same_url(const char *a, const char *b);

/* Return whether a webhook is shown with exactly these events, in any order, or without its events. */
int webhook_has_events(const struct registered_webhook *webhook, const struct json_value *events);

/*
 * Print `ID URL EVENTS` after what was done, or write them as an object. What may be a password or a token in
 * the URL is left out.
 */
void webhook_print(const char *done, const struct registered_webhook *webhook);
void webhook_put(struct json_writer *json, const struct registered_webhook *webhook);

#endif
