#ifndef CLI_SERVICE_ANSWER_H
#define CLI_SERVICE_ANSWER_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * Reads answers of the invoicing service: its error envelope, and its webhook subscriptions. The service
 * documents only the envelope, so every likely form of a subscription is accepted. Answers are untrusted.
 */

struct service_violation {
        char *field; /* NULL: missing */
        char *message;
};

/* {"ok": false, "error": {code, message, violations, requestId}}; missing members are NULL. */
struct service_error {
        char *code;
        char *message;
        char *request_id;
        struct service_violation *violations;
        size_t n_violations;
};

/* Read the valid parts of an envelope. Release it with service_error_clear(). */
void service_error_read(const char *body, size_t len, struct service_error *error);
void service_error_clear(struct service_error *error);

/* A webhook subscription, without its secret. */
struct subscription_view {
        char *id;
        char *url;
        char **events;
        size_t n_events;
        int shows_events; /* the answer has a list of events; else n_events is 0 */
        char *created;    /* createdAt, or NULL */
};

struct subscription_views {
        struct subscription_view *items;
        size_t n;
};

/**
 * service_answer_list(body, len, views, error):
 * Read a list of subscriptions: an array, or an object that has one as `webhooks`, `data`, `items` or
 * `subscriptions`. Each must have an id, a string or a number, and a url; events may be missing. Return 0, or
 * -1 with the reason. Call subscription_views_clear() in either case.
 */
int service_answer_list(const char *body, size_t len, struct subscription_views *views,
                        struct error *error) MUST_CHECK;

/**
 * service_answer_one(body, len, views):
 * Read the registered subscription, if the answer has it: an object with an id, or one with such an object as
 * `webhook`, `data` or `subscription`. The url may be missing. views then has one item, else none. Call
 * subscription_views_clear() in either case.
 */
void service_answer_one(const char *body, size_t len, struct subscription_views *views);

void subscription_views_clear(struct subscription_views *views);

#endif
