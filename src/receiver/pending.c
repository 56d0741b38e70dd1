#include "receiver/pending.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/pool.h"
#include "kafka/outage.h"
#include "spool/spool.h"

/* Time for the disk, after which a delivery is answered 503. */
#define SPOOL_TIMEOUT_MS 8000

void
pending_init(struct pending_list *list, struct receiver_shared *shared, int wake_fd)
{
        list->shared = shared;
        TAILQ_INIT(&list->waiting);
        TAILQ_INIT(&list->spooling);
        TAILQ_INIT(&list->answered);
        spool_inbox_init(&list->inbox, wake_fd);
}

static void
move(struct pending *pending, struct pending_head *list)
{
        if (pending->list != NULL)
                TAILQ_REMOVE(pending->list, pending, entry);
        pending->list = list;
        TAILQ_INSERT_TAIL(list, pending, entry);
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
        pending->is_of_doctor = screen_is_of_doctor(request); /* whose headers are soon forgotten */
        (void)http_request_body(request, &len);
        pending->bytes = len;
        pending->memory = http_request_take_memory(request);
        pending->began_ns = began_ns;
        pending->deadline_ms = began_ns / 1000000 + (int64_t)list->shared->config->ack_timeout_ms;
        (void)snprintf(pending->delivery_id, sizeof(pending->delivery_id), "%s",
                       screened->delivery.delivery_id);
        pending->is_guarded = screened->source->replay_guard && !is_replay;
        memcpy(pending->signature, screened->delivery.signature, sizeof(pending->signature));
        move(pending, &list->waiting);
        return pending;
}

/* Tell the replay guard what became of the delivery, once. */
static void
end_append(struct receiver_shared *shared, struct pending *pending)
{
        if (pending->is_guarded)
                receiver_shared_end_append(shared, pending->account->name, pending->signature,
                                           pending->delivery_id, pending->may_be_stored);
        pending->is_guarded = 0;
}

/* Release the delivery when all reports have come. */
static void
release(struct pending_list *list, struct pending *pending)
{
        if (pending->in_kafka || pending->in_spool) {
                if (pending->request == NULL && pending->list != &list->answered)
                        move(pending, &list->answered);
                return;
        }
        end_append(list->shared, pending);
        TAILQ_REMOVE(pending->list, pending, entry);
        memory_budget_release(list->shared->budget, pending->memory);
        if (!pending->is_leaked)
                free(pending->body);
        free((void *)(uintptr_t)pending->item.item.record.fields.data);
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

        metrics_count_request(pending->account->metrics,
                              pending->is_of_doctor ? OUTCOME_PROBE : OUTCOME_ACCEPTED);
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
        char marked[DELIVERY_DETAIL_SIZE];
        const struct receiver_refused refused = {
            .account = pending->account,
            .outcome = OUTCOME_UNAVAILABLE,
            .status = 503,
            .client = *http_request_client(pending->request),
            .request_id = http_request_id(pending->request),
            .is_of_doctor = pending->is_of_doctor,
            .detail = pending->is_of_doctor ? screen_mark(marked, detail) : detail,
        };

        receiver_shared_refused(shared, &refused);
        http_reply_error(pending->request, &error);
}

/* Note whether Kafka works. That it refuses a record for good says nothing about others. */
static void
note_result(struct receiver_shared *shared, const struct pending *pending, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        if (reason == NULL) {
                receiver_shared_note_append(shared);
                return;
        }
        if (!pending->is_refused)
                atomic_store(&shared->failed_ms, clock_monotonic_ms());
        log_flood(&shared->append_failed, LOG_LEVEL_WARNING, "appending failed reason=%s",
                  log_quote(reason, quoted));
}

/* Answer the request, which is still waiting. failure is NULL for 200; else message is for the client. */
static void
answer(struct pending_list *list, struct pending *pending, const char *message, const char *failure)
{
        crash_point("before-answer");
        if (failure == NULL)
                answer_accepted(list->shared, pending);
        else
                answer_unavailable(list->shared, pending, message, failure);
        pending->request = NULL;
}

void
pending_cancel(struct pending_list *list, struct pending *pending, const char *reason)
{
        note_result(list->shared, pending, reason);
        release(list, pending);
}

void
pending_spool(struct pending_list *list, struct pending *pending)
{
        pending->in_spool = 1;
        pending->deadline_ms = clock_monotonic_ms() + SPOOL_TIMEOUT_MS;
        pending->item.inbox = &list->inbox;
        move(pending, &list->spooling);
        spool_writer_put(spool_writer(list->shared->spool), &pending->item);
}

/*
 * Hand a delivery that Kafka has not taken to the spool. Return 0, or -1 with the spool's reason: NULL if
 * there is no spool, or the delivery is in it or answered.
 */
static int
try_spool(struct pending_list *list, struct pending *pending, const char **refusal)
{
        *refusal = NULL;
        if (list->shared->spool == NULL || pending->request == NULL || pending->in_spool)
                return -1;
        *refusal = spool_writer_refuses(spool_writer(list->shared->spool),
                                        segment_record_size(&pending->item.item.record));
        if (*refusal != NULL)
                return -1;
        pending_spool(list, pending);
        return 0;
}

/* Return why neither the spool, if it has a reason, nor Kafka has stored a delivery. */
static const char *
explain(const char *refusal, const char *failure, char detail[RECENT_DETAIL_SIZE])
{
        if (refusal == NULL)
                return failure;
        (void)snprintf(detail, RECENT_DETAIL_SIZE, "%s; %s", refusal, failure);
        return detail;
}

void
pending_report(struct pending_list *list, struct pending *pending, const struct producer_outcome *outcome)
{
        char detail[RECENT_DETAIL_SIZE];
        const char *refusal;

        pending->is_refused = outcome->failure != NULL && outcome->is_final;
        note_result(list->shared, pending, outcome->failure);
        pending->in_kafka = 0;
        pending->may_be_stored |= outcome->failure == NULL || outcome->may_be_there;
        if (outcome->failure == NULL && pending->request != NULL)
                answer(list, pending, NULL, NULL);
        else if (try_spool(list, pending, &refusal) != 0 && pending->request != NULL && !pending->in_spool)
                answer(list, pending, "the delivery could not be stored; send it again",
                       explain(refusal, outcome->failure, detail));
        release(list, pending);
}

void
pending_serve(struct pending_list *list)
{
        struct spool_item *item;

        while ((item = spool_inbox_take(&list->inbox)) != NULL) {
                struct pending *pending = (struct pending *)((char *)item - offsetof(struct pending, item));

                pending->in_spool = 0;
                pending->may_be_stored |= item->failure == NULL || item->may_be_there;
                if (item->failure == NULL && !pending->is_refused)
                        receiver_shared_note_spooled(list->shared);
                if (pending->request != NULL)
                        answer(list, pending, item->failure, item->failure);
                release(list, pending);
        }
}

static void
fail_all(struct pending_list *list, struct pending_head *head, const char *reason)
{
        const struct producer_outcome outcome = {.failure = reason, .may_be_there = 1};
        struct pending *pending = TAILQ_FIRST(head), *next;

        for (; pending != NULL; pending = next) {
                next = TAILQ_NEXT(pending, entry);
                if (!pending->in_kafka)
                        continue;
                pending->is_leaked = pending->body != NULL;
                pending_report(list, pending, &outcome);
        }
}

void
pending_fail_all(struct pending_list *list, const char *reason)
{
        fail_all(list, &list->answered, reason);
        fail_all(list, &list->spooling, reason);
        fail_all(list, &list->waiting, reason);
}

size_t
pending_expire(struct pending_list *list, int64_t now_ms)
{
        struct pending *pending;
        char text[RECENT_DETAIL_SIZE], detail[RECENT_DETAIL_SIZE];
        const char *refusal, *cause;
        size_t n = 0;

        while ((pending = TAILQ_FIRST(&list->waiting)) != NULL && pending->deadline_ms <= now_ms) {
                atomic_store(&list->shared->failed_ms, now_ms);
                n++;
                if (try_spool(list, pending, &refusal) == 0)
                        continue;
                cause =
                    outage_describe("Kafka did not acknowledge it within ack_timeout", text, sizeof(text));
                answer(list, pending, "the delivery was not stored in time; send it again",
                       explain(refusal, cause, detail));
                release(list, pending);
        }
        while ((pending = TAILQ_FIRST(&list->spooling)) != NULL && pending->deadline_ms <= now_ms) {
                answer(list, pending, "the delivery was not stored in time; send it again",
                       "the spool's disk did not confirm it in time");
                release(list, pending);
        }
        return n;
}

void
pending_await_spool(struct pending_list *list)
{
        struct pending *pending;
        int n;

        do {
                n = 0;
                pending_serve(list);
                TAILQ_FOREACH(pending, &list->spooling, entry)
                n++;
                TAILQ_FOREACH(pending, &list->answered, entry)
                n += pending->in_spool;
                if (n > 0)
                        clock_sleep_ms(10);
        } while (n > 0);
}

/* Return the earlier of two deadlines; -1: none. */
static int64_t
earlier(int64_t deadline_ms, const struct pending *pending)
{
        if (pending == NULL || (deadline_ms >= 0 && deadline_ms < pending->deadline_ms))
                return deadline_ms;
        return pending->deadline_ms;
}

int64_t
pending_next_deadline(const struct pending_list *list)
{
        return earlier(earlier(-1, TAILQ_FIRST(&list->waiting)), TAILQ_FIRST(&list->spooling));
}
