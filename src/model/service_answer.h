#ifndef MODEL_SERVICE_ANSWER_H
#define MODEL_SERVICE_ANSWER_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * What the invoicing service answers, read: its error envelope, and its webhook subscriptions. Only the envelope is
 * documented by the service, so of subscriptions every likely form is taken. Answers are hostile: whatever they hold, they
 * are read or refused. For the command line: memory that fails ends the process.
 */

struct service_violation {
        char *field; /* NULL: not said */
        char *message;
};

/* {"ok": false, "error": {code, message, violations, requestId}}; each may be missing, and is NULL then. */
struct service_error {
        char *code;
        char *message;
        char *request_id;
        struct service_violation *violations;
        size_t n_violations;
};

/* Read an envelope, as far as it is one. Release it with service_error_clear(). */
void service_error_read(const char *body, size_t len, struct service_error *error);
void service_error_clear(struct service_error *error);

/* A webhook subscription. The secret is not among what is known of it. */
struct subscription_view {
        char *id;
        char *url;
        char **events;
        size_t n_events;
        int shows_events; /* else none are said, and n_events is 0 */
        char *created;    /* createdAt, or NULL */
};

struct subscription_views {
        struct subscription_view *items;
        size_t n;
};

/**
 * service_answer_list(body, len, views, error):
 * Read a list of subscriptions: an array, or an object that has one as `webhooks`, `data`, `items` or `subscriptions`. Each
 * must have an id (a string, or a number) and a url; events that are missing are none. Returns 0, or -1 with the reason;
 * subscription_views_clear() in either case.
 */
int service_answer_list(const char *body, size_t len, struct subscription_views *views,
                        struct error *error) MUST_CHECK;

/**
 * service_answer_one(body, len, views):
 * Read the subscription that was registered, if the answer shows it: an object with an id, or one that has it as `webhook`,
 * `data` or `subscription`. A url may be missing. views has one item then, else none; release it in either case.
 */
void service_answer_one(const char *body, size_t len, struct subscription_views *views);

void subscription_views_clear(struct subscription_views *views);

#endif
