#include "receiver/intake.h"

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

struct intake {
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
note_failure(struct intake *intake)
{
        if (intake->failing_since_ms == 0)
                intake->failing_since_ms = clock_monotonic_ms();
}

static void
on_report(void *record_arg, const char *reason, int may_be_there, void *arg)
{
        struct intake *intake = arg;

        if (reason == NULL) {
                intake->failing_since_ms = 0;
                intake->patience_ms = PATIENCE_MS;
        } else {
                note_failure(intake);
        }
        pending_report(&intake->pending, record_arg, reason, may_be_there);
}

static void
on_statistics(const struct statistics_totals *totals, void *arg)
{
        struct intake *intake = arg;

        metrics_note_client(intake->shared->metrics, CLIENT_RECEIVER, &intake->statistics, totals);
}

/*
 * Whether the producer has come to nothing for too long although Kafka answers others. The time without Kafka is none of its:
 * what counts is that something was asked, and answered, when this one had been failing for as long.
 */
static int
is_stuck(const struct intake *intake)
{
        int64_t since = atomic_load(&intake->shared->reachable_since_ms);

        if (since == 0 || (intake->failing_since_ms == 0 && producer_has_id(intake->producer)))
                return 0;
        if (since < intake->failing_since_ms)
                since = intake->failing_since_ms;
        if (since < intake->producer_tried_ms)
                since = intake->producer_tried_ms;
        return probe_asked_ms(intake->shared->probe) - since >= intake->patience_ms;
}

/*
 * Whether there is to be another producer: there is none, or it has failed for good, or it is stuck; and why. Not at once
 * when the one before had been made a moment ago: without a permission, each fails as soon as it is made.
 */
static int
needs_producer(struct intake *intake, int64_t now, struct error *why)
{
        if (intake->producer == NULL || producer_is_broken(intake->producer, why))
                return now - intake->producer_tried_ms >= RETRY_PRODUCER_MS;
        if (!is_stuck(intake))
                return 0;
        (void)error_set(why, "it came to nothing although Kafka can be reached");
        intake->patience_ms *= 2;
        if (intake->patience_ms > PATIENCE_MAX_MS)
                intake->patience_ms = PATIENCE_MAX_MS;
        return 1;
}

/* Report what the producer still has as failed. */
static void
close_producer(struct intake *intake)
{
        struct producer *producer = intake->producer;

        intake->producer = NULL;
        producer_free(producer);
        pending_give_up(&intake->pending, "Kafka's client does not end");
}

/* Another producer where one is needed; connections and requests stay. */
static void
renew_producer(struct intake *intake)
{
        int64_t now = clock_monotonic_ms();
        struct error error, why = {""};
        char quoted[LOG_QUOTED_SIZE];
        int is_news;

        if (!needs_producer(intake, now, &why))
                return;
        pthread_mutex_lock(&intake->mutex);
        if (intake->producer != NULL && producer_has_id(intake->producer))
                intake->failure.text[0] = '\0';
        is_news = strcmp(intake->failure.text, why.text) != 0;
        intake->failure = why;
        close_producer(intake);
        intake->failing_since_ms = 0;
        intake->producer_tried_ms = now;
        intake->producer = producer_new(intake->shared->config, intake->shared->bootstrap, intake->wake_fd,
                                        on_report, intake, &error);
        if (intake->producer != NULL && atomic_load(&intake->shared->reachable_since_ms) != 0)
                producer_connect(intake->producer, CONNECT_TIMEOUT_MS);
        pthread_mutex_unlock(&intake->mutex);
        if (intake->producer == NULL)
                log_error("a producer cannot be made reason=%s", log_quote(error.text, quoted));
        else if (is_news)
                log_warning("a producer has failed and was replaced reason=%s", log_quote(why.text, quoted));
        if (intake->producer != NULL)
                producer_watch(intake->producer, on_statistics);
}

/* screened: what is known of the request, or NULL. */
static void
refuse(struct intake *intake, struct http_request *request, const struct screened *screened,
       const struct refusal *refusal)
{
        const struct receiver_refused refused = {
            .account = receiver_shared_account(intake->shared, screened == NULL ? NULL : screened->source),
            .outcome = refusal->outcome,
            .status = refusal->error.status,
            .client = *http_request_client(request),
            .request_id = http_request_id(request),
            .delivery = refusal->outcome == OUTCOME_STALE_GENUINE ? &screened->delivery : NULL,
        };

        receiver_shared_refused(intake->shared, &refused);
        http_reply_error(request, &refusal->error);
}

static void
refuse_for_now(struct intake *intake, struct http_request *request, const struct screened *screened,
               const char *why)
{
        const struct refusal refusal = {
            .outcome = OUTCOME_UNAVAILABLE,
            .error = {.status = 503, .code = "UNAVAILABLE", .message = why},
        };

        refuse(intake, request, screened, &refusal);
}

/* Hand a genuine delivery to Kafka, under an id that the replay guard has let pass or knows to be a replay of an original. */
static void
append(struct intake *intake, struct http_request *request, const struct progress *progress,
       const char *original)
{
        const struct screened *screened = &progress->screened;
        const struct delivery *delivery = &screened->delivery;
        rd_kafka_headers_t *headers = entry_headers(intake->shared->config, screened, clock_now_ms(),
                                                    http_request_id(request), original);
        struct span key = {delivery->delivery_id, strlen(delivery->delivery_id)};
        struct pending *pending = NULL;
        struct error error;
        size_t len;
        void *body;

        if (headers != NULL)
                pending =
                    pending_add(&intake->pending, request, screened, original != NULL, progress->began_ns);
        if (pending == NULL) {
                if (headers != NULL)
                        rd_kafka_headers_destroy(headers);
                if (original == NULL && screened->source->replay_guard)
                        receiver_shared_end_append(intake->shared, screened->source->name,
                                                   delivery->signature, delivery->delivery_id, 0);
                refuse_for_now(intake, request, screened, "out of memory; send it again");
                return;
        }
        crash_point("before-append");
        body = http_request_take_body(request, &len);
        if (producer_append(intake->producer, key, body, len, headers, pending, &error) != 0) {
                free(body);
                pending_cancel(&intake->pending, pending, error.text);
                refuse_for_now(intake, request, screened, "no room for the delivery; send it again");
                return;
        }
        crash_point("after-append");
        http_request_forget(request); /* the next one takes the memory, warm in the processor's cache */
}

static int
verify(const struct intake *intake, struct progress *progress, struct span body, struct refusal *refusal)
{
        int result = screen_verify(&progress->screened, body.data, body.len, refusal);

        metrics_observe(intake->shared->metrics, HISTOGRAM_VERIFY,
                        (uint64_t)(clock_monotonic_ns() - progress->began_ns), 1);
        return result;
}

/*
 * Tell the service's stale deliveries from others'. They are refused alike, and the client must not find out which it was:
 * the work after the signature has been computed takes as long either way.
 */
static enum metrics_outcome
judge_stale(struct intake *intake, struct screened *screened, struct span body)
{
        const struct delivery *delivery = &screened->delivery;
        int64_t age_s = clock_now_ms() / 1000 - delivery->timestamp;

        if (body.data == NULL ||
            !receiver_shared_may_check_stale(intake->shared, body.len * screened->source->n_keys,
                                             clock_monotonic_ns() / 1000))
                return OUTCOME_STALE_UNCHECKED;
        if (!screen_is_genuine(screened, body.data, body.len))
                return OUTCOME_STALE;
        metrics_observe(intake->shared->metrics, HISTOGRAM_STALE_AGE, (uint64_t)(age_s < 0 ? -age_s : age_s),
                        1);
        return OUTCOME_STALE_GENUINE;
}

const struct config *
intake_config(struct intake *intake)
{
        if (!current_is(intake->shared->current, intake->config)) {
                config_free(intake->config);
                intake->config = current_hold(intake->shared->current);
                intake->version++;
        }
        return intake->config;
}

/* Make the checks that need the head only. Returns 0, or -1 with the refusal. */
static int
check_head(struct intake *intake, const struct http_request *request, struct progress *progress,
           struct refusal *refusal)
{
        const struct config *config = intake_config(intake);

        progress->version = intake->version;
        if (screen_line(config, request, &progress->screened, refusal) != 0)
                return -1;
        if (http_request_is_too_large(request))
                return 0; /* and it is refused for that */
        return screen_headers(request, clock_now_ms(), &progress->screened, refusal);
}

void
intake_head(struct intake *intake, struct http_request *request)
{
        static const struct refusal throttled = {
            .outcome = OUTCOME_THROTTLED,
            .error = {.status = 429,
                      .code = "TOO_MANY_REQUESTS",
                      .message = "too many requests from this address were refused; wait a second"},
        };
        struct clients *clients = intake->shared->clients;
        struct progress *progress = http_request_data(request);
        struct refusal refusal;

        if (clients != NULL &&
            clients_is_throttled(clients, http_request_client(request), clock_coarse_ms())) {
                refuse(intake, request, NULL, &throttled);
                return;
        }
        if (check_head(intake, request, progress, &refusal) == 0)
                return;
        if (refusal.outcome == OUTCOME_STALE && http_request_awaits_continue(request))
                refusal.outcome = OUTCOME_STALE_UNCHECKED;
        if (refusal.outcome == OUTCOME_STALE) {
                progress->is_stale = 1;
                http_request_make_body_optional(request); /* intake_complete() finds out whose it is */
        } else {
                refuse(intake, request, &progress->screened, &refusal);
        }
}

void
intake_complete(struct intake *intake, struct http_request *request)
{
        struct progress *progress = http_request_data(request);
        struct screened *screened = &progress->screened;
        struct refusal refusal;
        struct span body;
        int is_genuine;

        (void)intake_config(intake);
        progress->began_ns = clock_monotonic_ns();
        body.data = http_request_body(request, &body.len);
        if ((progress->is_stale || progress->version != intake->version) &&
            check_head(intake, request, progress, &refusal) != 0) {
                if (refusal.outcome == OUTCOME_STALE)
                        refusal.outcome = judge_stale(intake, screened, body);
                refuse(intake, request, screened, &refusal);
                return;
        }
        is_genuine = body.data != NULL && verify(intake, progress, body, &refusal) == 0;
        if (is_genuine)
                renew_producer(intake);
        if (body.data == NULL) /* a reload has made a stale delivery fresh, but its body was discarded */
                refuse_for_now(intake, request, screened, "no room for the body; send it again");
        else if (!is_genuine)
                refuse(intake, request, screened, &refusal);
        else if (intake->refuse_from_ms != 0 && progress->began_ns / 1000000 >= intake->refuse_from_ms)
                refuse_for_now(intake, request, screened, "the receiver stops; send it again");
        else if (!atomic_load(&intake->shared->may_append) || intake->producer == NULL)
                refuse_for_now(intake, request, screened, "Kafka is not reachable yet; send it again");
}

/* A replay is appended as well, marked as one, for somebody to look at in quarantine. */
void
intake_append(struct intake *intake, struct http_request *request)
{
        const struct progress *progress = http_request_data(request);
        const struct screened *screened = &progress->screened;
        char original[DELIVERY_ID_MAX + 1];
        enum replay_verdict verdict =
            receiver_shared_begin_append(intake->shared, screened->source, &screened->delivery, original);

        if (verdict != REPLAY_UNDECIDED)
                append(intake, request, progress, verdict == REPLAY_FOUND ? original : NULL);
        else
                refuse_for_now(intake, request, screened,
                               "another delivery with this signature is being stored; send it again");
}

struct intake *
intake_new(struct receiver_shared *shared, int wake_fd, struct error *error)
{
        struct intake *intake = mem_alloc(sizeof(*intake));

        intake->shared = shared;
        intake->wake_fd = wake_fd;
        intake->patience_ms = PATIENCE_MS;
        pthread_mutex_init(&intake->mutex, NULL);
        pending_init(&intake->pending, shared);
        intake->producer = producer_new(shared->config, shared->bootstrap, wake_fd, on_report, intake, error);
        if (intake->producer == NULL) {
                free(intake);
                return NULL;
        }
        producer_watch(intake->producer, on_statistics);
        intake->config = current_hold(shared->current);
        return intake;
}

void
intake_free(struct intake *intake)
{
        if (intake == NULL)
                return;
        close_producer(intake);
        config_free(intake->config);
        free(intake);
}

void
intake_serve(struct intake *intake)
{
        (void)intake_config(intake); /* the one before, and its secrets, are not kept for the next request */
        if (intake->producer != NULL)
                producer_serve(intake->producer);
        renew_producer(intake);
}

void
intake_expire(struct intake *intake)
{
        if (pending_expire(&intake->pending, clock_monotonic_ms()) > 0)
                note_failure(intake);
}

int
intake_is_ready(struct intake *intake, struct error *error)
{
        int is_ready;

        if (pthread_mutex_trylock(&intake->mutex) != 0) { /* held for as long as a replacement takes */
                (void)error_set(error, "its producer is being replaced");
                return 0;
        }
        is_ready = intake->producer != NULL && producer_has_id(intake->producer);
        if (!is_ready)
                (void)error_set(error, "Kafka has given no producer id yet%s%s",
                                intake->failure.text[0] == '\0' ? "" : ": ", intake->failure.text);
        pthread_mutex_unlock(&intake->mutex);
        return is_ready;
}

void
intake_connect(struct intake *intake, int timeout_ms)
{
        if (pthread_mutex_trylock(&intake->mutex) != 0)
                return; /* a producer that is being made does it itself */
        if (intake->producer != NULL)
                producer_connect(intake->producer, timeout_ms);
        pthread_mutex_unlock(&intake->mutex);
}

void
intake_refuse_from(struct intake *intake, int64_t from_ms)
{
        intake->refuse_from_ms = from_ms;
}

int64_t
intake_next_deadline(const struct intake *intake)
{
        return pending_next_deadline(&intake->pending);
}

size_t
intake_n_pending(const struct intake *intake)
{
        return pending_count(&intake->pending);
}
