#include "receiver/handler.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/outage.h"
#include "receiver/screen.h"

struct handler {
        struct receiver_shared *shared;
        struct appender *appender;   /* the lane's */
        const struct config *config; /* held: the newest that this lane has seen */
        unsigned version;            /* counts the configurations that config has been */
        int64_t refuse_from_ms;      /* monotonic; 0: never */
};

/* State of a request between its steps. Its source belongs to the configuration of that version. */
struct progress {
        struct screened screened;
        unsigned version;
        int is_stale;
        int64_t began_ns; /* monotonic: when the request was complete */
};

_Static_assert(sizeof(struct progress) <= HTTP_REQUEST_DATA_SIZE, "it is kept with the request");

struct handler *
handler_new(struct receiver_shared *shared, struct appender *appender)
{
        struct handler *handler = mem_alloc(sizeof(*handler));

        handler->shared = shared;
        handler->appender = appender;
        handler->config = current_hold(shared->current);
        return handler;
}

void
handler_free(struct handler *handler)
{
        if (handler == NULL)
                return;
        config_free(handler->config);
        free(handler);
}

const struct config *
handler_config(struct handler *handler)
{
        if (!current_is(handler->shared->current, handler->config)) {
                config_free(handler->config);
                handler->config = current_hold(handler->shared->current);
                handler->version++;
        }
        return handler->config;
}

void
handler_refuse_from(struct handler *handler, int64_t from_ms)
{
        handler->refuse_from_ms = from_ms;
}

/* Count, log and answer a refusal. screened is NULL while nothing is known of the request. */
static void
refuse(struct handler *handler, struct http_request *request, const struct screened *screened,
       const struct screen_refusal *refusal)
{
        const char *why = *refusal->found.detail == '\0' ? refusal->error.message : refusal->found.detail;
        int is_of_doctor = screen_is_of_doctor(request);
        char marked[DELIVERY_DETAIL_SIZE];
        const struct receiver_refused refused = {
            .account = receiver_shared_account(handler->shared, screened == NULL ? NULL : screened->source),
            .outcome = refusal->outcome,
            .status = refusal->error.status,
            .client = *http_request_client(request),
            .request_id = http_request_id(request),
            .near_source = refusal->near_source,
            .is_of_doctor = is_of_doctor,
            .detail = is_of_doctor ? screen_mark(marked, why) : why,
            .delivery = refusal->outcome == OUTCOME_STALE_GENUINE ? &screened->delivery : NULL,
        };

        receiver_shared_refused(handler->shared, &refused);
        http_reply_error(request, &refusal->error);
}

static void
refuse_for_now(struct handler *handler, struct http_request *request, const struct screened *screened,
               const char *why)
{
        const struct screen_refusal refusal = {
            .outcome = OUTCOME_UNAVAILABLE,
            .error = {.status = 503, .code = "UNAVAILABLE", .message = why},
        };

        refuse(handler, request, screened, &refusal);
}

/* Refuse a delivery that neither Kafka nor the spool can store now. */
static void
refuse_unstored(struct handler *handler, struct http_request *request, const struct screened *screened,
                const char *obstacle)
{
        struct screen_refusal refusal = {
            .outcome = OUTCOME_UNAVAILABLE,
            .error = {.status = 503, .code = "UNAVAILABLE", .message = obstacle},
        };

        if (handler->shared->spool == NULL)
                (void)outage_describe(obstacle, refusal.found.detail, sizeof(refusal.found.detail));
        refuse(handler, request, screened, &refusal);
}

static int
verify(const struct handler *handler, struct progress *progress, struct span body,
       struct screen_refusal *refusal)
{
        int result = screen_verify(&progress->screened, body.data, body.len, refusal);

        metrics_observe(handler->shared->metrics, HISTOGRAM_VERIFY,
                        (uint64_t)(clock_monotonic_ns() - progress->began_ns), 1);
        return result;
}

/*
 * Distinguish the service's stale deliveries from those of others. Both are refused alike, and the client
 * must not learn which it was: the work after the signature was computed takes equally long.
 */
static enum metrics_outcome
judge_stale(struct handler *handler, struct screened *screened, struct span body)
{
        const struct delivery *delivery = &screened->delivery;
        int64_t age_s = clock_now_ms() / 1000 - delivery->timestamp;

        if (body.data == NULL ||
            !receiver_shared_take_stale_budget(handler->shared, body.len * screened->source->n_keys,
                                               clock_monotonic_ns() / 1000))
                return OUTCOME_STALE_UNCHECKED;
        if (!screen_is_genuine(screened, body.data, body.len))
                return OUTCOME_STALE;
        metrics_observe(handler->shared->metrics, HISTOGRAM_STALE_AGE, (uint64_t)(age_s < 0 ? -age_s : age_s),
                        1);
        return OUTCOME_STALE_GENUINE;
}

/* Make the checks for which the header section suffices. Returns 0, or -1 with the refusal. */
static int
check_head(struct handler *handler, const struct http_request *request, struct progress *progress,
           struct screen_refusal *refusal)
{
        const struct config *config = handler_config(handler);

        progress->version = handler->version;
        if (screen_line(config, request, &progress->screened, refusal) != 0)
                return -1;
        if (http_request_is_too_large(request))
                return 0; /* the server refuses it */
        return screen_headers(request, clock_now_ms(), &progress->screened, refusal);
}

void
handler_head(struct handler *handler, struct http_request *request)
{
        static const struct screen_refusal throttled = {
            .outcome = OUTCOME_THROTTLED,
            .error = {.status = 429,
                      .code = "TOO_MANY_REQUESTS",
                      .message = "too many requests from this address were refused; wait a second"},
        };
        struct clients *clients = handler->shared->clients;
        struct progress *progress = http_request_data(request);
        struct screen_refusal refusal;

        if (clients != NULL &&
            clients_is_throttled(clients, http_request_client(request), clock_coarse_ms())) {
                refuse(handler, request, NULL, &throttled);
                return;
        }
        if (check_head(handler, request, progress, &refusal) == 0)
                return;
        if (refusal.outcome == OUTCOME_STALE && http_request_awaits_continue(request))
                screen_classify_stale(&progress->screened, OUTCOME_STALE_UNCHECKED, &refusal);
        if (refusal.outcome == OUTCOME_STALE) {
                progress->is_stale = 1;
                http_request_make_body_optional(
                    request); /* handler_complete() checks whether the service sent it */
        } else {
                refuse(handler, request, &progress->screened, &refusal);
        }
}

/* Return NULL if Kafka or the spool may take a body of this size, else why not. */
static const char *
find_obstacle(const struct handler *handler, size_t len, int has_producer)
{
        const struct receiver_shared *shared = handler->shared;

        if (atomic_load(&shared->may_append) && has_producer)
                return NULL;
        return shared->spool == NULL ? "Kafka is not reachable yet"
                                     : spool_writer_refuses(spool_writer(shared->spool), len);
}

void
handler_complete(struct handler *handler, struct http_request *request)
{
        struct progress *progress = http_request_data(request);
        struct screened *screened = &progress->screened;
        struct screen_refusal refusal;
        struct span body;
        int is_genuine, has_producer;
        const char *obstacle;

        (void)handler_config(handler);
        progress->began_ns = clock_monotonic_ns();
        body.data = http_request_body(request, &body.len);
        if ((progress->is_stale || progress->version != handler->version) &&
            check_head(handler, request, progress, &refusal) != 0) {
                if (refusal.outcome == OUTCOME_STALE)
                        screen_classify_stale(screened, judge_stale(handler, screened, body), &refusal);
                refuse(handler, request, screened, &refusal);
                return;
        }
        is_genuine = body.data != NULL && verify(handler, progress, body, &refusal) == 0;
        has_producer = is_genuine && appender_renew(handler->appender);
        if (body.data == NULL) /* a reload has made a stale delivery fresh, but its body was discarded */
                refuse_for_now(handler, request, screened, "no room for the body; send it again");
        else if (!is_genuine)
                refuse(handler, request, screened, &refusal);
        else if (handler->refuse_from_ms != 0 && progress->began_ns / 1000000 >= handler->refuse_from_ms)
                refuse_for_now(handler, request, screened, "the receiver is stopping; send it again");
        else if ((obstacle = find_obstacle(handler, body.len, has_producer)) != NULL)
                refuse_unstored(handler, request, screened, obstacle);
}

/* A replay is appended, too, and marked as one: it goes to quarantine. */
void
handler_append(struct handler *handler, struct http_request *request)
{
        const struct progress *progress = http_request_data(request);
        const struct screened *screened = &progress->screened;
        const struct address *proxy = http_request_untrusted_proxy(request);
        char original[DELIVERY_ID_MAX + 1];
        enum replay_verdict verdict =
            receiver_shared_begin_append(handler->shared, screened->source, &screened->delivery, original);
        const char *failure;

        if (proxy != NULL)
                receiver_shared_note_proxy(handler->shared, proxy);
        failure = verdict == REPLAY_UNDECIDED
                      ? "another delivery with this signature is being stored; send it again"
                      : appender_append(handler->appender, request, screened,
                                        verdict == REPLAY_FOUND ? original : NULL, progress->began_ns);
        if (failure != NULL)
                refuse_for_now(handler, request, screened, failure);
}
