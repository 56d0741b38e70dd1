#ifndef CLI_WEBHOOK_H
#define CLI_WEBHOOK_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/json.h"
#include "cli/service.h"

/*
 * Webhooks as the service shows them. It does not document how, so every likely form is read: a list is an
 * array, or the first one in an object; an id is a string or a number. Nothing of it is trusted.
 */
struct registered_webhook {
        char *id;
        char *url;
        char **events;
        size_t n_events;
        int shows_events; /* there is a list of events; else n_events is 0 */
        char *created;    /* createdAt, or NULL */
};

struct webhooks {
        struct registered_webhook *items;
        size_t n;
};

/**
 * webhook_list(service, webhooks, failure):
 * List all. Returns 0, or an exit status with the failure; call webhook_list_clear() in either case.
 */
int webhook_list(struct service *service, struct webhooks *webhooks,
                 struct service_failure *failure) MUST_CHECK;
void webhook_list_clear(struct webhooks *webhooks);

/* Remove one. Returns 0, EX_NOINPUT if there is none of this ID, or another exit status with the failure. */
int webhook_remove(struct service *service, const char *id, struct service_failure *failure) MUST_CHECK;

/* Read the webhook in the answer to its registration; members that are not in it are NULL. */
void webhook_read_added(const struct json_value *answer, struct registered_webhook *webhook);
void webhook_clear(struct registered_webhook *webhook);

/* Return whether two URLs are equivalent. */
int webhook_same_url(const char *a, const char *b);

/* Return whether a webhook has exactly these events, in any order and any number of times. */
int webhook_has_events(const struct registered_webhook *webhook, char *const *events, size_t n);

/*
 * Return `ID URL EVENTS`, without what may be a password or a token in the URL, to be freed; or write it as
 * members of an object.
 */
char *webhook_describe(const struct registered_webhook *webhook) MUST_CHECK;
void webhook_put_members(struct json_writer *json, const struct registered_webhook *webhook);

#endif
