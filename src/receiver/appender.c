#include "receiver/appender.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/producer.h"
#include "model/record.h"
#include "model/reverification.h"

#define RETRY_PRODUCER_MS 1000
#define CONNECT_TIMEOUT_MS 2000
#define STUCK_MS 5000 /* without progress while Kafka answers the probe; doubled with each replacement */
#define STUCK_MAX_MS 300000

struct appender {
        struct receiver_shared *shared;
        int wake_fd;
        struct producer *producer; /* NULL while it cannot be created; the lane's own */
        pthread_mutex_t mutex;     /* held to replace the producer, and by other threads to use it */
        int64_t producer_tried_ms;
        int64_t failing_since_ms; /* 0: the last append did not fail, but for a record that Kafka refuses */
        int64_t stuck_ms;
        struct statistics_totals statistics; /* of the producer, as last reported */
        struct error failure; /* why the last producer was replaced, until one has its id; under the mutex */
        struct pending_list pending;
};

static void
note_failure(struct appender *appender)
{
        if (appender->failing_since_ms == 0)
                appender->failing_since_ms = clock_monotonic_ms();
}

static void
on_report(void *record_arg, const struct producer_outcome *outcome, void *arg)
{
        struct appender *appender = arg;

        if (outcome->failure == NULL) {
                appender->failing_since_ms = 0;
                appender->stuck_ms = STUCK_MS;
        } else if (!outcome->is_final) {
                note_failure(appender);
        }
        pending_report(&appender->pending, record_arg, outcome);
}

static void
on_statistics(const struct statistics_totals *totals, void *arg)
{
        struct appender *appender = arg;

        metrics_note_client(appender->shared->metrics, CLIENT_RECEIVER, &appender->statistics, totals);
}

/*
 * Whether the producer has made no progress for too long although Kafka answers the probe. Outages do not
 * count: the probe must have asked, and been answered, when this producer had already been failing for as
 * long.
 */
static int
is_stuck(const struct appender *appender)
{
        int64_t since = atomic_load(&appender->shared->reachable_since_ms);

        if (since == 0 || (appender->failing_since_ms == 0 && producer_has_id(appender->producer)))
                return 0;
        if (since < appender->failing_since_ms)
                since = appender->failing_since_ms;
        if (since < appender->producer_tried_ms)
                since = appender->producer_tried_ms;
        return probe_asked_ms(appender->shared->probe) - since >= appender->stuck_ms;
}

/*
 * Decide whether to create another producer now. Return 1 with the reason if there is none, if it has failed
 * for good, or if it is stuck; the next one then gets twice the time. Wait a second after the last attempt:
 * without a permission each producer fails as soon as it is created.
 */
static int
plan_replacement(struct appender *appender, int64_t now, struct error *why)
{
        if (appender->producer == NULL || producer_is_broken(appender->producer, why))
                return now - appender->producer_tried_ms >= RETRY_PRODUCER_MS;
        if (!is_stuck(appender))
                return 0;
        (void)error_set(why, "no progress although Kafka is reachable");
        appender->stuck_ms *= 2;
        if (appender->stuck_ms > STUCK_MAX_MS)
                appender->stuck_ms = STUCK_MAX_MS;
        return 1;
}

/* Close the producer, and report its outstanding records as failed. */
static void
close_producer(struct appender *appender)
{
        struct producer *producer = appender->producer;

        appender->producer = NULL;
        producer_free(producer);
        pending_fail_all(&appender->pending, "Kafka's client did not shut down");
}

int
appender_renew(struct appender *appender)
{
        int64_t now = clock_monotonic_ms();
        struct error error, why = {""};
        char quoted[LOG_QUOTED_SIZE];
        int is_news;

        if (!plan_replacement(appender, now, &why))
                return appender->producer != NULL;
        pthread_mutex_lock(&appender->mutex);
        if (appender->producer != NULL && producer_has_id(appender->producer))
                appender->failure.text[0] = '\0';
        is_news = strcmp(appender->failure.text, why.text) != 0;
        appender->failure = why;
        close_producer(appender);
        appender->failing_since_ms = 0;
        appender->producer_tried_ms = now;
        appender->producer = producer_new(appender->shared->config, appender->shared->bootstrap,
                                          (struct producer_manner){PRODUCER_PROMPT, 1}, appender->wake_fd,
                                          on_report, appender, &error);
        if (appender->producer != NULL && atomic_load(&appender->shared->reachable_since_ms) != 0)
                producer_connect(appender->producer, CONNECT_TIMEOUT_MS);
        pthread_mutex_unlock(&appender->mutex);
        if (appender->producer == NULL)
                log_error("cannot create a producer reason=%s", log_quote(error.text, quoted));
        else if (is_news)
                log_warning("a producer has failed and was replaced reason=%s", log_quote(why.text, quoted));
        if (appender->producer != NULL)
                producer_watch(appender->producer, on_statistics);
        return appender->producer != NULL;
}

/* The headers of a delivery's record in `deliveries`, and the texts that are made for them. */
struct record_headers {
        const char *names[12];
        const char *values[12];
        size_t n;
        char received[CLOCK_RFC3339_SIZE];
        char spool_signature[SPOOL_SIGNATURE_SIZE];
};

static void
add(struct record_headers *headers, const char *name, const char *value)
{
        if (value == NULL)
                return;
        headers->names[headers->n] = name;
        headers->values[headers->n++] = value;
}

static void
list_headers(const struct config *config, const struct screened *screened, int64_t now_ms,
             const char *request_id, const char *replay_of, struct record_headers *headers)
{
        const struct delivery *delivery = &screened->delivery;

        headers->n = 0;
        add(headers, RECORD_SOURCE, screened->source->name);
        add(headers, RECORD_WEBHOOK_ID, delivery->webhook_id);
        add(headers, RECORD_TIMESTAMP, delivery->timestamp_text);
        add(headers, RECORD_SIGNATURE, delivery->signature_text);
        add(headers, RECORD_RECEIVED, clock_format_ms(now_ms, headers->received));
        add(headers, RECORD_REQUEST_ID, request_id);
        add(headers, RECORD_INSTANCE, config->instance);
        add(headers, RECORD_REPLAY_OF, replay_of);
        add(headers, RECORD_TRACEPARENT, screened->traceparent);
        add(headers, RECORD_TRACESTATE, screened->tracestate);
}

/* Return them for librdkafka, or NULL when memory fails. */
static rd_kafka_headers_t *
make_headers(const struct record_headers *list)
{
        rd_kafka_headers_t *headers = rd_kafka_headers_new(list->n);

        for (size_t i = 0; headers != NULL && i < list->n; i++) {
                if (rd_kafka_header_add(headers, list->names[i], -1, list->values[i], -1) != 0) {
                        rd_kafka_headers_destroy(headers);
                        return NULL;
                }
        }
        return headers;
}

static struct span
span_of(const char *text)
{
        return (struct span){text, strlen(text)};
}

/*
 * Sign the time of reception, for routers that verify, by the key that they need for the delivery's own
 * signature in any case. Returns 0, or -1 when memory or OpenSSL fails.
 */
static int
sign_reception(const struct screened *screened, struct record_headers *headers)
{
        const struct delivery *delivery = &screened->delivery;
        const struct record record = {.key = span_of(delivery->delivery_id),
                                      .source = span_of(screened->source->name),
                                      .timestamp = span_of(delivery->timestamp_text),
                                      .signature = span_of(delivery->signature_text),
                                      .received = span_of(headers->received)};

        return reverification_sign_spooled(delivery->key, &record, headers->spool_signature);
}

/*
 * Get ready to spool the delivery, now or when Kafka does not acknowledge it: by then its request's headers
 * are gone. Takes the body of the request. Returns 0, or -1 when memory fails.
 */
static int
prepare_spooling(struct pending *pending, struct http_request *request, const struct screened *screened,
                 struct record_headers *headers, int64_t now_ms)
{
        struct segment_record *record = &pending->item.item.record;
        size_t size = 64, len = 0;
        uint8_t *fields;
        int failed;

        if (sign_reception(screened, headers) != 0)
                return -1;
        for (size_t i = 0; i < headers->n; i++)
                size += strlen(headers->names[i]) + strlen(headers->values[i]) + 8;
        fields = malloc(size + DELIVERY_ID_MAX + sizeof(RECORD_SPOOL_SIGNATURE) + SPOOL_SIGNATURE_SIZE);
        if (fields == NULL)
                return -1;
        size += DELIVERY_ID_MAX + sizeof(RECORD_SPOOL_SIGNATURE) + SPOOL_SIGNATURE_SIZE;
        failed = segment_add_field(fields, size, &len, "", span_of(screened->delivery.delivery_id));
        for (size_t i = 0; i < headers->n; i++)
                failed |=
                    segment_add_field(fields, size, &len, headers->names[i], span_of(headers->values[i]));
        failed |=
            segment_add_field(fields, size, &len, RECORD_SPOOL_SIGNATURE, span_of(headers->spool_signature));
        if (failed != 0) {
                free(fields);
                return -1;
        }
        pending->body = http_request_take_body(request, &record->body.len);
        record->body.data = pending->body;
        record->fields = (struct span){(const char *)fields, len};
        record->received_ms = now_ms;
        return 0;
}

/* Whether Kafka is likely to acknowledge a delivery. */
static int
is_worth_trying(const struct appender *appender)
{
        return appender->producer != NULL && producer_has_id(appender->producer) &&
               !receiver_shared_is_away(appender->shared);
}

/* Hand the delivery to Kafka. Returns 0, or -1 with the reason; then nothing is reported. */
static int
produce(struct appender *appender, struct pending *pending, struct http_request *request,
        const struct screened *screened, const struct record_headers *list, struct error *error)
{
        struct producer_record record = {
            .key = span_of(screened->delivery.delivery_id),
            .keeps_body = appender->shared->spool != NULL,
            .headers = make_headers(list),
            .arg = pending,
        };

        if (record.headers == NULL)
                return error_set(error, "out of memory");
        if (record.keeps_body) {
                record.body = pending->body;
                record.body_len = pending->bytes;
        } else {
                record.body = http_request_take_body(request, &record.body_len);
        }
        pending->in_kafka = 1;
        if (producer_append(appender->producer, &record, error) == 0)
                return 0;
        pending->in_kafka = 0;
        pending->is_refused = record.is_final;
        if (!record.keeps_body)
                free(record.body);
        return -1;
}

/* Hand the delivery to Kafka if that is worth trying, else to the spool, else to Kafka. */
static int
hand_over(struct appender *appender, struct pending *pending, struct http_request *request,
          const struct screened *screened, const struct record_headers *list, struct error *error)
{
        struct spool *spool = appender->shared->spool;
        int is_worth = spool == NULL || is_worth_trying(appender);
        const char *refusal = NULL;

        if (is_worth && produce(appender, pending, request, screened, list, error) == 0)
                return 0;
        if (spool != NULL) {
                refusal = spool_writer_refuses(spool_writer(spool),
                                               segment_record_size(&pending->item.item.record));
                if (refusal == NULL) {
                        pending_spool(&appender->pending, pending);
                        return 0;
                }
        }
        if (is_worth)
                return -1;
        if (appender->producer == NULL)
                return error_set(error, "Kafka is not reachable, and %s", refusal);
        return produce(appender, pending, request, screened, list, error);
}

const char *
appender_append(struct appender *appender, struct http_request *request, const struct screened *screened,
                const char *original, int64_t began_ns)
{
        const struct delivery *delivery = &screened->delivery;
        int64_t now_ms = clock_now_ms();
        struct record_headers list;
        struct pending *pending =
            pending_add(&appender->pending, request, screened, original != NULL, began_ns);
        struct error error = {"out of memory"};

        if (pending == NULL) {
                if (original == NULL && screened->source->replay_guard)
                        receiver_shared_end_append(appender->shared, screened->source->name,
                                                   delivery->signature, delivery->delivery_id, 0);
                return "out of memory; send it again";
        }
        list_headers(appender->shared->config, screened, now_ms, http_request_id(request), original, &list);
        crash_point("before-append");
        if ((appender->shared->spool != NULL &&
             prepare_spooling(pending, request, screened, &list, now_ms) != 0) ||
            hand_over(appender, pending, request, screened, &list, &error) != 0) {
                pending_cancel(&appender->pending, pending, error.text);
                return "no room for the delivery; send it again";
        }
        crash_point("after-append");
        http_request_forget(request); /* the next request reuses the memory, warm in the processor's cache */
        return NULL;
}

struct appender *
appender_new(struct receiver_shared *shared, int wake_fd, struct error *error)
{
        struct appender *appender = mem_alloc(sizeof(*appender));

        appender->shared = shared;
        appender->wake_fd = wake_fd;
        appender->stuck_ms = STUCK_MS;
        pthread_mutex_init(&appender->mutex, NULL);
        pending_init(&appender->pending, shared, wake_fd);
        appender->producer =
            producer_new(shared->config, shared->bootstrap, (struct producer_manner){PRODUCER_PROMPT, 1},
                         wake_fd, on_report, appender, error);
        if (appender->producer == NULL) {
                free(appender);
                return NULL;
        }
        producer_watch(appender->producer, on_statistics);
        return appender;
}

void
appender_free(struct appender *appender)
{
        if (appender == NULL)
                return;
        close_producer(appender);
        pending_await_spool(&appender->pending);
        free(appender);
}

void
appender_serve(struct appender *appender)
{
        if (appender->producer != NULL)
                producer_serve(appender->producer);
        pending_serve(&appender->pending);
        (void)appender_renew(appender);
}

void
appender_expire(struct appender *appender)
{
        if (pending_expire(&appender->pending, clock_monotonic_ms()) > 0)
                note_failure(appender);
}

int
appender_is_ready(struct appender *appender, struct error *error)
{
        int is_ready;

        if (pthread_mutex_trylock(&appender->mutex) != 0) { /* held while the producer is replaced */
                (void)error_set(error, "its producer is being replaced");
                return 0;
        }
        is_ready = appender->producer != NULL && producer_has_id(appender->producer);
        if (!is_ready)
                (void)error_set(error, "Kafka has given no producer id yet%s%s",
                                appender->failure.text[0] == '\0' ? "" : ": ", appender->failure.text);
        pthread_mutex_unlock(&appender->mutex);
        return is_ready;
}

void
appender_connect(struct appender *appender, int timeout_ms)
{
        if (pthread_mutex_trylock(&appender->mutex) != 0)
                return; /* a producer that is being created connects by itself */
        if (appender->producer != NULL)
                producer_connect(appender->producer, timeout_ms);
        pthread_mutex_unlock(&appender->mutex);
}

int64_t
appender_next_deadline(const struct appender *appender)
{
        return pending_next_deadline(&appender->pending);
}
