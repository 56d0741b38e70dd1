#include "cli/webhook_ensure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"

static int
is_at_url(const struct webhook_ensure *ensure, const struct registered_webhook *webhook)
{
        return webhook_same_url(webhook->url, ensure->url);
}

/* Return whether a webhook is the wanted one, as far as the service shows it. */
static int
is_wanted(const struct webhook_ensure *ensure, const struct registered_webhook *webhook)
{
        return is_at_url(ensure, webhook) &&
               (!webhook->shows_events || webhook_has_events(webhook, ensure->events, ensure->n_events));
}

static const struct registered_webhook *
find_id(const struct webhooks *webhooks, const char *id)
{
        for (size_t i = 0; i < webhooks->n; i++) {
                if (strcmp(webhooks->items[i].id, id) == 0)
                        return &webhooks->items[i];
        }
        return NULL;
}

/* Return whether a webhook is at least as new as another, if the service shows when they were made. */
static int
is_newer(const struct registered_webhook *webhook, const struct registered_webhook *other)
{
        int64_t made_ms, other_ms;

        return webhook->created == NULL || other->created == NULL ||
               clock_parse_ms(webhook->created, strlen(webhook->created), &made_ms) != 0 ||
               clock_parse_ms(other->created, strlen(other->created), &other_ms) != 0 || made_ms >= other_ms;
}

/* Find the webhook that is right; of several the newest, which has the newest secret. */
static const struct registered_webhook *
find_right(const struct webhook_ensure *ensure)
{
        const struct registered_webhook *right = NULL;

        for (size_t i = 0; i < ensure->before.n; i++) {
                const struct registered_webhook *webhook = &ensure->before.items[i];

                if (is_wanted(ensure, webhook) && (right == NULL || is_newer(webhook, right)))
                        right = webhook;
        }
        return right;
}

/* Find the new webhook in the list: by its ID, or else as the only new one at the URL. */
static const struct registered_webhook *
find_added(const struct webhook_ensure *ensure, const char *id)
{
        const struct registered_webhook *found = NULL;
        size_t n_new = 0;

        if (id != NULL)
                return find_id(&ensure->after, id);
        for (size_t i = 0; i < ensure->after.n; i++) {
                const struct registered_webhook *webhook = &ensure->after.items[i];

                if (!is_at_url(ensure, webhook) || find_id(&ensure->before, webhook->id) != NULL)
                        continue;
                found = webhook;
                n_new++;
        }
        return n_new == 1 ? found : NULL;
}

/* Withdraw a new webhook that the service shows otherwise than wanted. Returns the exit status. */
static int
withdraw(struct webhook_ensure *ensure, const struct registered_webhook *added,
         struct service_failure *failure)
{
        struct service_failure ignored;
        int is_gone = find_id(&ensure->before, added->id) == NULL &&
                      webhook_remove(ensure->service, added->id, &ignored) == 0;
        char *shown = webhook_describe(added);

        *failure = (struct service_failure){.remedy = "pass --url and --events as the service shows them"};
        (void)error_set(&failure->reason,
                        "the service shows the webhook differently than requested%s: %.300s",
                        is_gone ? ", so it was removed again" : "", shown);
        free(shown);
        return EX_DATAERR;
}

/* Register the webhook, and find it in the list. Returns 0, or an exit status with the failure. */
static int
add(struct webhook_ensure *ensure, struct service_failure *failure)
{
        struct json_value *answer;
        struct registered_webhook posted;
        const struct registered_webhook *added;
        int status = service_request(ensure->service, "POST", "/webhooks", ensure->payload, &answer, failure);

        if (status != 0) {
                if (service_may_have_done(failure))
                        failure->remedy = "run it again: it looks first whether the webhook was registered";
                return status;
        }
        webhook_read_added(answer, &posted);
        json_tree_free(answer);
        status = webhook_list(ensure->service, &ensure->after, failure);
        added = status == 0 ? find_added(ensure, posted.id) : NULL;
        webhook_clear(&posted);
        if (status != 0)
                return status;
        if (added == NULL) {
                (void)error_set(&failure->reason, "the service has registered the webhook, but does not list "
                                                  "it; nothing was removed");
                return EX_DATAERR;
        }
        if (!is_wanted(ensure, added))
                return withdraw(ensure, added, failure);
        ensure->kept = added;
        ensure->was_updated = find_id(&ensure->before, added->id) != NULL;
        ensure->was_added = !ensure->was_updated;
        return 0;
}

/* Find the webhooks to remove: all others at the URL. A service may list one twice. */
static void
find_old(struct webhook_ensure *ensure)
{
        ensure->old = mem_alloc((ensure->before.n + 1) * sizeof(*ensure->old));
        for (size_t i = 0; i < ensure->before.n; i++) {
                const struct registered_webhook *webhook = &ensure->before.items[i];

                if (is_at_url(ensure, webhook) && find_id(&ensure->before, webhook->id) == webhook &&
                    (ensure->kept == NULL || strcmp(webhook->id, ensure->kept->id) != 0))
                        ensure->old[ensure->n_old++] = webhook;
        }
}

int
webhook_ensure(struct webhook_ensure *ensure, struct service_failure *failure)
{
        int status = webhook_list(ensure->service, &ensure->before, failure);

        if (status != 0)
                return status;
        if (!ensure->rotates)
                ensure->kept = find_right(ensure);
        if (ensure->kept == NULL && !ensure->is_dry)
                status = add(ensure, failure);
        if (status != 0)
                return status;
        find_old(ensure);
        for (size_t i = 0; i < ensure->n_old && !ensure->is_dry && status == 0; i++) {
                status = webhook_remove(ensure->service, ensure->old[i]->id, failure);
                if (status == EX_NOINPUT)
                        status = 0; /* somebody else has removed it */
                ensure->n_removed += status == 0;
        }
        if (status != 0)
                failure->remedy = ensure->rotates ? "run it again with --rotate, to remove the old webhooks"
                                                  : "run it again, to remove the old webhooks";
        return status;
}

void
webhook_ensure_clear(struct webhook_ensure *ensure)
{
        free(ensure->old);
        webhook_list_clear(&ensure->before);
        webhook_list_clear(&ensure->after);
}
