#include "sandbox/delivery_scheduler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "sandbox/file.h"
#include "sandbox/transport.h"

#define PENDING_MAX 100000
#define PENDING_BYTES_MAX ((size_t)256 << 20)
#define CONCURRENT_ATTEMPTS 8 /* for each webhook */
#define DATE_SIZE 64

struct scheduled_delivery {
        TAILQ_ENTRY(scheduled_delivery) entry;     /* in webhook->waiting, if is_waiting */
        TAILQ_ENTRY(scheduled_delivery) all_entry; /* in scheduler->deliveries */
        struct delivery_scheduler *scheduler;
        struct webhook *webhook;
        struct event *timer;               /* fires when the next attempt is due */
        struct transport_request *request; /* the current attempt, or NULL */
        char id[BYTES_UUID_SIZE];
        char *entity;
        char *kind;
        char *body;
        size_t len;
        unsigned n_attempts;
        int64_t due_ms;   /* time of the next attempt, if there is no current one */
        int64_t signed_s; /* timestamp of the last attempt; 0: no attempt yet */
        int is_waiting;   /* for its turn, as the webhook has too many current attempts */
};

struct delivery_scheduler {
        struct event_base *base;
        struct delivery_scheduler_settings settings;
        struct transport *transport;
        struct scheduled_deliveries deliveries;
        size_t n_deliveries;
        size_t n_bytes;
};

static void
delivery_free(struct scheduled_delivery *delivery)
{
        struct delivery_scheduler *scheduler = delivery->scheduler;

        if (delivery->is_waiting)
                TAILQ_REMOVE(&delivery->webhook->waiting, delivery, entry);
        if (delivery->request != NULL) {
                transport_cancel(delivery->request);
                delivery->webhook->n_in_flight--;
        }
        if (delivery->timer != NULL)
                event_free(delivery->timer);
        TAILQ_REMOVE(&scheduler->deliveries, delivery, all_entry);
        scheduler->n_deliveries--;
        scheduler->n_bytes -= delivery->len;
        free(delivery->entity);
        free(delivery->kind);
        free(delivery->body);
        free(delivery);
}

/* Format the date by RFC 5322 section 3.3, in UTC. The locale is C: the program sets none. */
static char *
format_date(char text[DATE_SIZE])
{
        time_t now = time(NULL);
        struct tm tm;

        (void)gmtime_r(&now, &tm);
        (void)strftime(text, DATE_SIZE, "%a, %d %b %Y %H:%M:%S +0000", &tm);
        return text;
}

static char *
compose_mail(const struct scheduled_delivery *delivery, const char *last_outcome)
{
        char date[DATE_SIZE];

        return mem_printf("Date: %s\r\n"
                          "From: Invoicing service <no-reply@sandbox.invalid>\r\n"
                          "To: users-of-%s@sandbox.invalid\r\n"
                          "Subject: A webhook delivery was given up after %u attempts\r\n"
                          "Message-ID: <%s@sandbox.invalid>\r\n"
                          "MIME-Version: 1.0\r\n"
                          "Content-Type: text/plain; charset=utf-8\r\n"
                          "Content-Transfer-Encoding: 8bit\r\n"
                          "\r\n"
                          "A webhook delivery was not answered 2xx and will not be retried.\r\n"
                          "\r\n"
                          "event:        %s\r\n"
                          "endpoint:     %s\r\n"
                          "webhook-id:   %s\r\n"
                          "delivery-id:  %s\r\n"
                          "attempts:     %u\r\n"
                          "last outcome: %s\r\n",
                          format_date(date), delivery->entity, delivery->n_attempts, delivery->id,
                          delivery->kind, delivery->webhook->url, delivery->webhook->id, delivery->id,
                          delivery->n_attempts, last_outcome);
}

/* Write <delivery-id>.eml (RFC 5322) into the outbox. */
static int
write_mail(const struct scheduled_delivery *delivery, const char *last_outcome, struct error *error)
{
        char *path = mem_printf("%s/%s.eml", delivery->scheduler->settings.outbox, delivery->id);
        char *text = compose_mail(delivery, last_outcome);
        int result = file_replace(path, text, strlen(text), error);

        free(text);
        free(path);
        return result;
}

/* Report to the entity's users that a delivery was given up. */
static void
report_failure(const struct scheduled_delivery *delivery, const char *last_outcome)
{
        const char *mail = "none";
        struct error error;

        if (delivery->scheduler->settings.outbox != NULL) {
                mail = "outbox";
                if (write_mail(delivery, last_outcome, &error) != 0) {
                        log_error("mail could not be written: %s", error.text);
                        mail = "failed";
                }
        }
        log_warning("delivery given up delivery-id=%s event=%s attempts=%u mail=%s", delivery->id,
                    delivery->kind, delivery->n_attempts, mail);
}

uint64_t
delivery_scheduler_retry_ms(uint64_t base_ms, unsigned n)
{
        return base_ms << (n > 0 ? n - 1 : 0);
}

static int64_t
next_due_ms(const struct scheduled_delivery *delivery)
{
        return clock_now_ms() +
               (int64_t)delivery_scheduler_retry_ms(delivery->scheduler->settings.retry_base_ms,
                                                    delivery->n_attempts);
}

/* Wait at most one interval, in case the wall clock was set back. */
static void
wait_until_due(struct scheduled_delivery *delivery)
{
        int64_t ms = delivery->due_ms - clock_now_ms(), most_ms = next_due_ms(delivery) - clock_now_ms();
        struct timeval in;

        ms = ms < 0 ? 0 : ms > most_ms ? most_ms : ms;
        in = (struct timeval){(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
        (void)evtimer_add(delivery->timer, &in);
}

static void
note_change(const struct delivery_scheduler *scheduler)
{
        scheduler->settings.changed(scheduler->settings.arg);
}

static void start_waiting(struct webhook *webhook);

/* Finish the delivery after an attempt, or schedule the next attempt. */
static void
settle(struct scheduled_delivery *delivery, const struct transport_result *result)
{
        char outcome[256], quoted[LOG_QUOTED_SIZE];

        if (result->status != 0)
                (void)snprintf(outcome, sizeof(outcome), "HTTP status %d", result->status);
        else
                (void)snprintf(outcome, sizeof(outcome), "no answer: %.200s", result->reason);
        log_info("attempt delivery-id=%s event=%s webhook-id=%s attempt=%u outcome=%s", delivery->id,
                 delivery->kind, delivery->webhook->id, delivery->n_attempts, log_quote(outcome, quoted));
        note_change(delivery->scheduler);
        if (result->status / 100 == 2) {
                delivery_free(delivery);
        } else if (delivery->n_attempts == DELIVERY_SCHEDULER_MAX_ATTEMPTS) {
                report_failure(delivery, outcome);
                delivery_free(delivery);
        } else {
                delivery->due_ms = next_due_ms(delivery);
                wait_until_due(delivery);
        }
}

static void
on_done(const struct transport_result *result, void *arg)
{
        struct scheduled_delivery *delivery = arg;
        struct webhook *webhook = delivery->webhook;

        delivery->request = NULL;
        webhook->n_in_flight--;
        settle(delivery, result);
        start_waiting(webhook);
}

/* Make an attempt. A local failure counts as a failed attempt. */
static void
start_attempt(struct scheduled_delivery *delivery)
{
        const struct transport_result failed = {0, "the attempt could not be made"};
        struct transport_attempt attempt = {.service = delivery->scheduler->settings.service,
                                            .key = delivery->webhook->key,
                                            .url = delivery->webhook->url,
                                            .webhook_id = delivery->webhook->id,
                                            .delivery_id = delivery->id,
                                            .body = delivery->body,
                                            .len = delivery->len};

        if (delivery->signed_s == 0 || !delivery->scheduler->settings.sign_once)
                delivery->signed_s = clock_now_ms() / 1000;
        attempt.timestamp = delivery->signed_s;
        delivery->n_attempts++;
        note_change(delivery->scheduler);
        delivery->request = transport_send(delivery->scheduler->transport, &attempt, on_done, delivery);
        if (delivery->request != NULL)
                delivery->webhook->n_in_flight++;
        else
                settle(delivery, &failed);
}

static void
start_waiting(struct webhook *webhook)
{
        struct scheduled_delivery *delivery;

        while (webhook->n_in_flight < CONCURRENT_ATTEMPTS &&
               (delivery = TAILQ_FIRST(&webhook->waiting)) != NULL) {
                TAILQ_REMOVE(&webhook->waiting, delivery, entry);
                delivery->is_waiting = 0;
                start_attempt(delivery);
        }
}

/* Queue the delivery for its webhook. */
static void
on_due(evutil_socket_t fd, short what, void *arg)
{
        struct scheduled_delivery *delivery = arg;

        (void)fd;
        (void)what;
        delivery->is_waiting = 1;
        TAILQ_INSERT_TAIL(&delivery->webhook->waiting, delivery, entry);
        start_waiting(delivery->webhook);
}

/* Create a delivery without an id. Returns NULL when too many are pending, or when out of memory. */
static struct scheduled_delivery *
delivery_new(struct delivery_scheduler *scheduler, struct webhook *webhook,
             const struct outgoing_event *event)
{
        struct scheduled_delivery *delivery;

        if (scheduler->n_deliveries == PENDING_MAX || event->len > PENDING_BYTES_MAX - scheduler->n_bytes) {
                static struct log_flood flood;

                log_flood(&flood, LOG_LEVEL_ERROR, "too many pending deliveries; delivery dropped");
                return NULL;
        }
        delivery = mem_alloc(sizeof(*delivery));
        delivery->scheduler = scheduler;
        delivery->webhook = webhook;
        delivery->entity = mem_strdup(event->entity);
        delivery->kind = mem_strdup(event->kind);
        delivery->body = mem_strndup(event->body, event->len);
        delivery->len = event->len;
        TAILQ_INSERT_TAIL(&scheduler->deliveries, delivery, all_entry);
        scheduler->n_deliveries++;
        scheduler->n_bytes += delivery->len;
        delivery->timer = evtimer_new(scheduler->base, on_due, delivery);
        if (delivery->timer != NULL)
                return delivery;
        delivery_free(delivery);
        return NULL;
}

const char *
delivery_scheduler_add(struct delivery_scheduler *scheduler, struct webhook *webhook,
                       const struct outgoing_event *event)
{
        struct scheduled_delivery *delivery = delivery_new(scheduler, webhook, event);

        if (delivery == NULL)
                return NULL;
        (void)bytes_random_uuid(delivery->id);
        delivery->due_ms = clock_now_ms();
        note_change(scheduler);
        event_active(delivery->timer, EV_TIMEOUT,
                     0); /* not now: an attempt may free the delivery, and its id */
        return delivery->id;
}

int
delivery_scheduler_restore(struct delivery_scheduler *scheduler, struct webhook *webhook,
                           const struct pending_delivery *pending)
{
        struct scheduled_delivery *delivery = delivery_new(scheduler, webhook, &pending->event);

        if (delivery == NULL)
                return -1;
        (void)snprintf(delivery->id, sizeof(delivery->id), "%s", pending->id);
        delivery->n_attempts = pending->n_attempts;
        delivery->due_ms = pending->due_ms;
        delivery->signed_s = pending->signed_s;
        if (delivery->n_attempts < DELIVERY_SCHEDULER_MAX_ATTEMPTS) {
                wait_until_due(delivery);
        } else {
                report_failure(delivery, "unknown: the service was restarted during the attempt");
                delivery_free(delivery);
        }
        return 0;
}

void
delivery_scheduler_each(const struct delivery_scheduler *scheduler,
                        void (*visit)(const struct webhook *webhook, const struct pending_delivery *pending,
                                      void *arg),
                        void *arg)
{
        const struct scheduled_delivery *delivery;

        TAILQ_FOREACH(delivery, &scheduler->deliveries, all_entry)
        {
                struct pending_delivery pending = {.id = delivery->id,
                                                   .n_attempts = delivery->n_attempts,
                                                   .signed_s = delivery->signed_s,
                                                   .due_ms = delivery->due_ms};

                pending.event =
                    (struct outgoing_event){delivery->entity, delivery->kind, delivery->body, delivery->len};
                if (delivery->request != NULL)
                        pending.due_ms = next_due_ms(delivery);
                visit(delivery->webhook, &pending, arg);
        }
}

void
delivery_scheduler_cancel(struct delivery_scheduler *scheduler, const struct webhook *webhook)
{
        struct scheduled_delivery *delivery = TAILQ_FIRST(&scheduler->deliveries);

        while (delivery != NULL) {
                struct scheduled_delivery *next = TAILQ_NEXT(delivery, all_entry);

                if (delivery->webhook == webhook)
                        delivery_free(delivery);
                delivery = next;
        }
}

size_t
delivery_scheduler_count(const struct delivery_scheduler *scheduler)
{
        return scheduler->n_deliveries;
}

struct delivery_scheduler *
delivery_scheduler_new(struct event_base *base, const struct delivery_scheduler_settings *settings)
{
        struct delivery_scheduler *scheduler = mem_alloc(sizeof(*scheduler));

        TAILQ_INIT(&scheduler->deliveries);
        scheduler->base = base;
        scheduler->settings = *settings;
        scheduler->transport = transport_new(base, settings->ca_file, WEBHOOKS_MAX);
        if (scheduler->transport != NULL)
                return scheduler;
        free(scheduler);
        return NULL;
}

void
delivery_scheduler_free(struct delivery_scheduler *scheduler)
{
        struct scheduled_delivery *delivery;

        if (scheduler == NULL)
                return;
        while ((delivery = TAILQ_FIRST(&scheduler->deliveries)) != NULL)
                delivery_free(delivery);
        transport_free(scheduler->transport);
        free(scheduler);
}
