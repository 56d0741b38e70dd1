#include "receiver/handler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/producer.h"
#include "receiver/entry.h"
#include "receiver/pending.h"
#include "receiver/screen.h"

#define RETRY_PRODUCER_MS 1000
#define CONNECT_TIMEOUT_MS 2000
#define PATIENCE_MS 5000 /* with a producer that only fails, while Kafka answers the probe */
#define PATIENCE_MAX_MS 300000

struct handler {
        struct receiver_shared *shared;
        const struct config *config; /* held: the newest that this lane has seen */
        int wake_fd;
        struct producer *producer; /* NULL while it cannot be made; the lane's own */
        pthread_mutex_t mutex;     /* held to replace the producer, and by others to use it */
        int64_t producer_tried_ms;
        int64_t failing_since_ms; /* 0: the last append did not fail */
        int64_t patience_ms;
        struct statistics_totals statistics; /* of the producer, as told last */
        struct error failure; /* why the last producer was replaced, until one has its id; under the mutex */
        int64_t refuse_from_ms; /* monotonic; 0: never */
        struct pending_list pending;
        unsigned version; /* counts the configurations that config has been */
};

/* What is known of a request between its steps. Its source is of the configuration that was current then. */
struct progress {
        struct screened screened;
        unsigned version;
        int is_stale;
        int64_t began_ns; /* monotonic: when the request was complete */
};

_Static_assert(sizeof(struct progress) <= HTTP_REQUEST_DATA_SIZE, "it is kept with the request");

static void
note_failure(struct handler *handler)
{
        if (handler->failing_since_ms == 0)
                handler->failing_since_ms = clock_monotonic_ms();
}

static void
on_report(void *record_arg, const char *reason, int may_be_there, void *arg)
{
        struct handler *handler = arg;

        if (reason == NULL) {
                handler->failing_since_ms = 0;
                handler->patience_ms = PATIENCE_MS;
        } else {
                note_failure(handler);
        }
        pending_report(&handler->pending, record_arg, reason, may_be_there);
}

static void
on_statistics(const struct statistics_totals *totals, void *arg)
{
        struct handler *handler = arg;

        metrics_note_client(handler->shared->metrics, CLIENT_RECEIVER, &handler->statistics, totals);
}

/*
 * Whether the producer has come to nothing for too long although Kafka answers others. The time without Kafka is none of its:
 * what counts is that something was asked, and answered, when this one had been failing for as long.
 */
static int
is_stuck(const struct handler *handler)
{
        int64_t since = atomic_load(&handler->shared->reachable_since_ms);

        if (since == 0 || (handler->failing_since_ms == 0 && producer_has_id(handler->producer)))
                return 0;
        if (since < handler->failing_since_ms)
                since = handler->failing_since_ms;
        if (since < handler->producer_tried_ms)
                since = handler->producer_tried_ms;
        return probe_asked_ms(handler->shared->probe) - since >= handler->patience_ms;
}

/*
 * Whether there is to be another producer: there is none, or it has failed for good, or it is stuck; and why. Not at once
 * when the one before had been made a moment ago: without a permission, each fails as soon as it is made.
 */
static int
needs_producer(struct handler *handler, int64_t now, struct error *why)
{
        if (handler->producer == NULL || producer_is_broken(handler->producer, why))
                return now - handler->producer_tried_ms >= RETRY_PRODUCER_MS;
        if (!is_stuck(handler))
                return 0;
        (void)error_set(why, "it came to nothing although Kafka can be reached");
        handler->patience_ms *= 2;
        if (handler->patience_ms > PATIENCE_MAX_MS)
                handler->patience_ms = PATIENCE_MAX_MS;
        return 1;
}

/* Report what the producer still has as failed. */
static void
close_producer(struct handler *handler)
{
        struct producer *producer = handler->producer;

        handler->producer = NULL;
        producer_free(producer);
        pending_give_up(&handler->pending, "Kafka's client does not end");
}

/* Another producer where one is needed; connections and requests stay. */
static void
renew_producer(struct handler *handler)
{
        int64_t now = clock_monotonic_ms();
        struct error error, why = {""};
        char quoted[LOG_QUOTED_SIZE];
        int is_news;

        if (!needs_producer(handler, now, &why))
                return;
        pthread_mutex_lock(&handler->mutex);
        if (handler->producer != NULL && producer_has_id(handler->producer))
                handler->failure.text[0] = '\0';
        is_news = strcmp(handler->failure.text, why.text) != 0;
        handler->failure = why;
        close_producer(handler);
        handler->failing_since_ms = 0;
        handler->producer_tried_ms = now;
        handler->producer = producer_new(handler->shared->config, handler->shared->bootstrap,
                                         handler->wake_fd, on_report, handler, &error);
        if (handler->producer != NULL && atomic_load(&handler->shared->reachable_since_ms) != 0)
                producer_connect(handler->producer, CONNECT_TIMEOUT_MS);
        pthread_mutex_unlock(&handler->mutex);
        if (handler->producer == NULL)
                log_error("a producer cannot be made reason=%s", log_quote(error.text, quoted));
        else if (is_news)
                log_warning("a producer has failed and was replaced reason=%s", log_quote(why.text, quoted));
        if (handler->producer != NULL)
                producer_watch(handler->producer, on_statistics);
}

/* screened: what is known of the request, or NULL. */
static void
refuse(struct handler *handler, struct http_request *request, const struct screened *screened,
       const struct screen_refusal *refusal)
{
        const struct receiver_refused refused = {
            .account = receiver_shared_account(handler->shared, screened == NULL ? NULL : screened->source),
            .outcome = refusal->outcome,
            .status = refusal->error.status,
            .client = *http_request_client(request),
            .request_id = http_request_id(request),
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

/* Hand a genuine delivery to Kafka, under an id that the replay guard has let pass or knows to be a replay of an original. */
static void
append(struct handler *handler, struct http_request *request, const struct progress *progress,
       const char *original)
{
        const struct screened *screened = &progress->screened;
        const struct delivery *delivery = &screened->delivery;
        rd_kafka_headers_t *headers = entry_headers(handler->shared->config, screened, clock_now_ms(),
                                                    http_request_id(request), original);
        struct span key = {delivery->delivery_id, strlen(delivery->delivery_id)};
        struct pending *pending = NULL;
        struct error error;
        size_t len;
        void *body;

        if (headers != NULL)
                pending =
                    pending_add(&handler->pending, request, screened, original != NULL, progress->began_ns);
        if (pending == NULL) {
                if (headers != NULL)
                        rd_kafka_headers_destroy(headers);
                if (original == NULL && screened->source->replay_guard)
                        receiver_shared_end_append(handler->shared, screened->source->name,
                                                   delivery->signature, delivery->delivery_id, 0);
                refuse_for_now(handler, request, screened, "out of memory; send it again");
                return;
        }
        crash_point("before-append");
        body = http_request_take_body(request, &len);
        if (producer_append(handler->producer, key, body, len, headers, pending, &error) != 0) {
                free(body);
                pending_cancel(&handler->pending, pending, error.text);
                refuse_for_now(handler, request, screened, "no room for the delivery; send it again");
                return;
        }
        crash_point("after-append");
        http_request_forget(request); /* the next one takes the memory, warm in the processor's cache */
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
 * Tell the service's stale deliveries from others'. They are refused alike, and the client must not find out which it was:
 * the work after the signature has been computed takes as long either way.
 */
static enum metrics_outcome
judge_stale(struct handler *handler, struct screened *screened, struct span body)
{
        const struct delivery *delivery = &screened->delivery;
        int64_t age_s = clock_now_ms() / 1000 - delivery->timestamp;

        if (body.data == NULL ||
            !receiver_shared_may_check_stale(handler->shared, body.len * screened->source->n_keys,
                                             clock_monotonic_ns() / 1000))
                return OUTCOME_STALE_UNCHECKED;
        if (!screen_is_genuine(screened, body.data, body.len))
                return OUTCOME_STALE;
        metrics_observe(handler->shared->metrics, HISTOGRAM_STALE_AGE, (uint64_t)(age_s < 0 ? -age_s : age_s),
                        1);
        return OUTCOME_STALE_GENUINE;
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

/* Make the checks that need the head only. Returns 0, or -1 with the refusal. */
static int
check_head(struct handler *handler, const struct http_request *request, struct progress *progress,
           struct screen_refusal *refusal)
{
        const struct config *config = handler_config(handler);

        progress->version = handler->version;
        if (screen_line(config, request, &progress->screened, refusal) != 0)
                return -1;
        if (http_request_is_too_large(request))
                return 0; /* and it is refused for that */
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
                refusal.outcome = OUTCOME_STALE_UNCHECKED;
        if (refusal.outcome == OUTCOME_STALE) {
                progress->is_stale = 1;
                http_request_make_body_optional(request); /* handler_complete() finds out whose it is */
        } else {
                refuse(handler, request, &progress->screened, &refusal);
        }
}

void
handler_complete(struct handler *handler, struct http_request *request)
{
        struct progress *progress = http_request_data(request);
        struct screened *screened = &progress->screened;
        struct screen_refusal refusal;
        struct span body;
        int is_genuine;

        (void)handler_config(handler);
        progress->began_ns = clock_monotonic_ns();
        body.data = http_request_body(request, &body.len);
        if ((progress->is_stale || progress->version != handler->version) &&
            check_head(handler, request, progress, &refusal) != 0) {
                if (refusal.outcome == OUTCOME_STALE)
                        refusal.outcome = judge_stale(handler, screened, body);
                refuse(handler, request, screened, &refusal);
                return;
        }
        is_genuine = body.data != NULL && verify(handler, progress, body, &refusal) == 0;
        if (is_genuine)
                renew_producer(handler);
        if (body.data == NULL) /* a reload has made a stale delivery fresh, but its body was discarded */
                refuse_for_now(handler, request, screened, "no room for the body; send it again");
        else if (!is_genuine)
                refuse(handler, request, screened, &refusal);
        else if (handler->refuse_from_ms != 0 && progress->began_ns / 1000000 >= handler->refuse_from_ms)
                refuse_for_now(handler, request, screened, "the receiver stops; send it again");
        else if (!atomic_load(&handler->shared->may_append) || handler->producer == NULL)
                refuse_for_now(handler, request, screened, "Kafka is not reachable yet; send it again");
}

/* A replay is appended as well, marked as one, for somebody to look at in quarantine. */
void
handler_append(struct handler *handler, struct http_request *request)
{
        const struct progress *progress = http_request_data(request);
        const struct screened *screened = &progress->screened;
        char original[DELIVERY_ID_MAX + 1];
        enum replay_verdict verdict =
            receiver_shared_begin_append(handler->shared, screened->source, &screened->delivery, original);

        if (verdict != REPLAY_UNDECIDED)
                append(handler, request, progress, verdict == REPLAY_FOUND ? original : NULL);
        else
                refuse_for_now(handler, request, screened,
                               "another delivery with this signature is being stored; send it again");
}

struct handler *
handler_new(struct receiver_shared *shared, int wake_fd, struct error *error)
{
        struct handler *handler = mem_alloc(sizeof(*handler));

        handler->shared = shared;
        handler->wake_fd = wake_fd;
        handler->patience_ms = PATIENCE_MS;
        pthread_mutex_init(&handler->mutex, NULL);
        pending_init(&handler->pending, shared);
        handler->producer =
            producer_new(shared->config, shared->bootstrap, wake_fd, on_report, handler, error);
        if (handler->producer == NULL) {
                free(handler);
                return NULL;
        }
        producer_watch(handler->producer, on_statistics);
        handler->config = current_hold(shared->current);
        return handler;
}

void
handler_free(struct handler *handler)
{
        if (handler == NULL)
                return;
        close_producer(handler);
        config_free(handler->config);
        free(handler);
}

void
handler_serve(struct handler *handler)
{
        (void)handler_config(
            handler); /* the one before, and its secrets, are not kept for the next request */
        if (handler->producer != NULL)
                producer_serve(handler->producer);
        renew_producer(handler);
}

void
handler_expire(struct handler *handler)
{
        if (pending_expire(&handler->pending, clock_monotonic_ms()) > 0)
                note_failure(handler);
}

int
handler_is_ready(struct handler *handler, struct error *error)
{
        int is_ready;

        if (pthread_mutex_trylock(&handler->mutex) != 0) { /* held for as long as a replacement takes */
                (void)error_set(error, "its producer is being replaced");
                return 0;
        }
        is_ready = handler->producer != NULL && producer_has_id(handler->producer);
        if (!is_ready)
                (void)error_set(error, "Kafka has given no producer id yet%s%s",
                                handler->failure.text[0] == '\0' ? "" : ": ", handler->failure.text);
        pthread_mutex_unlock(&handler->mutex);
        return is_ready;
}

void
handler_connect(struct handler *handler, int timeout_ms)
{
        if (pthread_mutex_trylock(&handler->mutex) != 0)
                return; /* a producer that is being made does it itself */
        if (handler->producer != NULL)
                producer_connect(handler->producer, timeout_ms);
        pthread_mutex_unlock(&handler->mutex);
}

void
handler_refuse_from(struct handler *handler, int64_t from_ms)
{
        handler->refuse_from_ms = from_ms;
}

int64_t
handler_next_deadline(const struct handler *handler)
{
        return pending_next_deadline(&handler->pending);
}

size_t
handler_n_pending(const struct handler *handler)
{
        return pending_count(&handler->pending);
}
