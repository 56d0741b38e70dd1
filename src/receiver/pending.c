#include "receiver/pending.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/pool.h"
#include "kafka/outage.h"

void
pending_init(struct pending_list *list, struct receiver_shared *shared)
{
        list->shared = shared;
        TAILQ_INIT(&list->waiting);
        TAILQ_INIT(&list->abandoned);
}

struct pending *
pending_add(struct pending_list *list, struct http_request *request, const struct screened *screened,
            int is_replay, int64_t began_ns)
{
        struct pending *pending = pool_alloc_zeroed(sizeof(*pending));
        size_t len;

        if (pending == NULL)
                return NULL;
        pending->request = request;
        pending->account = receiver_shared_account(list->shared, screened->source);
        (void)http_request_body(request, &len);
        pending->bytes = len;
        pending->memory = http_request_take_memory(request);
        pending->began_ns = began_ns;
        pending->deadline_ms = began_ns / 1000000 + (int64_t)list->shared->config->ack_timeout_ms;
        (void)snprintf(pending->delivery_id, sizeof(pending->delivery_id), "%s",
                       screened->delivery.delivery_id);
        pending->is_guarded = screened->source->replay_guard && !is_replay;
        memcpy(pending->signature, screened->delivery.signature, sizeof(pending->signature));
        TAILQ_INSERT_TAIL(&list->waiting, pending, entry);
        return pending;
}

static void
release(struct pending_list *list, struct pending *pending)
{
        memory_budget_release(list->shared->budget, pending->memory);
        pool_free(pending);
}

static void
log_accepted(const struct pending *pending)
{
        char text[ADDRESS_TEXT_SIZE];

        log_debug("accepted source=%s delivery_id=%s request_id=%s client=%s bytes=%" PRIu64,
                  pending->account->name, pending->delivery_id, http_request_id(pending->request),
                  address_format(http_request_client(pending->request), text), pending->bytes);
}

static void
answer_accepted(const struct receiver_shared *shared, const struct pending *pending)
{
        char body[sizeof("{\"ok\":true,\"deliveryId\":\"\"}") + DELIVERY_ID_MAX];
        int len = snprintf(body, sizeof(body), "{\"ok\":true,\"deliveryId\":\"%s\"}", pending->delivery_id);

        metrics_count_request(pending->account->metrics, OUTCOME_ACCEPTED);
        if (log_is_on(LOG_LEVEL_DEBUG))
                log_accepted(pending);
        http_reply(pending->request, 200, NULL, 0, body, (size_t)len);
        metrics_observe(shared->metrics, HISTOGRAM_ACK, (uint64_t)(clock_monotonic_ns() - pending->began_ns),
                        1);
}

static void
answer_unavailable(struct receiver_shared *shared, const struct pending *pending, const char *message,
                   const char *detail)
{
        const struct http_error error = {.status = 503, .code = "UNAVAILABLE", .message = message};
        const struct receiver_refused refused = {
            .account = pending->account,
            .outcome = OUTCOME_UNAVAILABLE,
            .status = 503,
            .client = *http_request_client(pending->request),
            .request_id = http_request_id(pending->request),
            .detail = detail,
        };

        receiver_shared_refused(shared, &refused);
        http_reply_error(pending->request, &error);
}

static void
note_result(struct receiver_shared *shared, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (reason == NULL) {
                if (atomic_load_explicit(&shared->failed_ms, memory_order_relaxed) != 0)
                        atomic_store(&shared->failed_ms, 0);
                return;
        }
        atomic_store(&shared->failed_ms, clock_monotonic_ms());
        log_flood(&shared->append_failed, LOG_LEVEL_WARNING, "appending failed reason=%s",
                  log_quote(reason, quoted));
}

static void
end_append(struct receiver_shared *shared, const struct pending *pending, int may_be_stored)
{
        if (pending->is_guarded)
                receiver_shared_end_append(shared, pending->account->name, pending->signature,
                                           pending->delivery_id, may_be_stored);
}

void
pending_cancel(struct pending_list *list, struct pending *pending, const char *reason)
{
        note_result(list->shared, reason);
        end_append(list->shared, pending, 0);
        TAILQ_REMOVE(&list->waiting, pending, entry);
        release(list, pending);
}

void
pending_report(struct pending_list *list, struct pending *pending, const char *reason, int may_be_there)
{
        note_result(list->shared, reason);
        end_append(list->shared, pending, reason == NULL || may_be_there);
        crash_point("before-answer");
        if (pending->request != NULL) {
                TAILQ_REMOVE(&list->waiting, pending, entry);
                if (reason == NULL)
                        answer_accepted(list->shared, pending);
                else
                        answer_unavailable(list->shared, pending,
                                           "the delivery could not be stored; send it again", reason);
        } else {
                TAILQ_REMOVE(&list->abandoned, pending, entry);
        }
        release(list, pending);
}

void
pending_fail_all(struct pending_list *list, const char *reason)
{
        struct pending *pending;

        while ((pending = TAILQ_FIRST(&list->waiting)) != NULL ||
               (pending = TAILQ_FIRST(&list->abandoned)) != NULL)
                pending_report(list, pending, reason, 1);
}

size_t
pending_expire(struct pending_list *list, int64_t now_ms)
{
        struct pending *pending;
        char detail[RECENT_DETAIL_SIZE];
        size_t n = 0;

        while ((pending = TAILQ_FIRST(&list->waiting)) != NULL && pending->deadline_ms <= now_ms) {
                atomic_store(&list->shared->failed_ms, now_ms);
                TAILQ_REMOVE(&list->waiting, pending, entry);
                answer_unavailable(list->shared, pending,
                                   "the delivery was not stored in time; send it again",
                                   outage_describe("Kafka did not acknowledge it within ack_timeout", detail,
                                                   sizeof(detail)));
                pending->request = NULL;
                TAILQ_INSERT_TAIL(&list->abandoned, pending, entry);
                n++;
        }
        return n;
}

int64_t
pending_next_deadline(const struct pending_list *list)
{
        const struct pending *first = TAILQ_FIRST(&list->waiting);

        return first == NULL ? -1 : first->deadline_ms;
}

size_t
pending_count(const struct pending_list *list)
{
        const struct pending *pending;
        size_t n = 0;

        TAILQ_FOREACH(pending, &list->waiting, entry)
        n++;
        return n;
}
