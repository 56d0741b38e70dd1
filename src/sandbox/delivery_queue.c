#include "sandbox/delivery_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/transport.h"

#define MAX_ATTEMPTS 10 /* of one delivery, including the first */
#define CONCURRENT_ATTEMPTS 8
#define DATE_SIZE 64

struct pending_delivery {
        TAILQ_ENTRY(pending_delivery) entry; /* in queue->waiting or queue->in_flight */
        struct delivery_queue *queue;
        struct transport_request *request; /* the current attempt, if it is in flight */
        char id[BYTES_UUID_SIZE];
        char *entity;
        char *kind;
        char *body;
        size_t len;
        unsigned n_attempts;
        int64_t due_us;   /* time of the next attempt; monotonic */
        int64_t signed_s; /* timestamp of the last attempt */
};

TAILQ_HEAD(pending_deliveries, pending_delivery);

struct delivery_queue {
        const struct delivery_settings *settings;
        struct delivery_target target;
        struct event *timer;               /* fires when the first of waiting is due */
        struct pending_deliveries waiting; /* the next one first */
        struct pending_deliveries in_flight;
        size_t n_in_flight;
};

static void
delivery_free(struct pending_delivery *delivery)
{
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
compose_mail(const struct pending_delivery *delivery, const char *last_outcome)
{
        const struct delivery_target *target = &delivery->queue->target;
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
                          delivery->kind, target->url, target->webhook_id, delivery->id, delivery->n_attempts,
                          last_outcome);
}

/*
 * Write <delivery-id>.eml (RFC 5322) into the outbox, where it appears when it is complete. Returns 0, or -1
 * after logging.
 */
static int
write_mail(const struct pending_delivery *delivery, const char *last_outcome)
{
        char *path = mem_printf("%s/%s.eml", delivery->queue->settings->outbox, delivery->id);
        char *temporary = mem_printf("%s.new", path), *text = compose_mail(delivery, last_outcome);
        FILE *out = fopen(temporary, "we");
        int is_written = out != NULL && fputs(text, out) >= 0, result = 0;

        if (out != NULL && fclose(out) != 0)
                is_written = 0;
        if (!is_written || rename(temporary, path) != 0) {
                log_error("mail could not be written file=%s: %s", path, strerror(errno));
                result = -1;
        }
        free(text);
        free(temporary);
        free(path);
        return result;
}

/* Report to the entity's users that a delivery was given up. */
static void
report_failure(const struct pending_delivery *delivery, const char *last_outcome)
{
        const char *mail = "none";
        char quoted[LOG_QUOTED_SIZE];

        if (delivery->queue->settings->outbox != NULL)
                mail = write_mail(delivery, last_outcome) == 0 ? "outbox" : "failed";
        log_warning("delivery given up delivery-id=%s event=%s attempts=%u mail=%s", delivery->id,
                    log_quote(delivery->kind, quoted), delivery->n_attempts, mail);
}

/* Return the interval after the delivery's last attempt. */
static int64_t
retry_interval_us(const struct pending_delivery *delivery)
{
        return (int64_t)(1000 * delivery->queue->settings->retry_base_ms << (delivery->n_attempts - 1));
}

/* Have the delivery wait for its due time, behind those that are due before it. */
static void
wait_until_due(struct pending_delivery *delivery)
{
        struct pending_deliveries *waiting = &delivery->queue->waiting;
        struct pending_delivery *earlier;

        TAILQ_FOREACH_REVERSE(earlier, waiting, pending_deliveries, entry)
        {
                if (earlier->due_us <= delivery->due_us)
                        break;
        }
        if (earlier == NULL)
                TAILQ_INSERT_HEAD(waiting, delivery, entry);
        else
                TAILQ_INSERT_AFTER(waiting, earlier, delivery, entry);
}

/* Finish the delivery after an attempt, or schedule the next attempt. It is in no list. */
static void
settle(struct pending_delivery *delivery, const struct transport_result *result)
{
        const struct delivery_queue *queue = delivery->queue;
        char outcome[256], quoted_kind[LOG_QUOTED_SIZE], quoted[LOG_QUOTED_SIZE];

        if (result->status != 0)
                (void)snprintf(outcome, sizeof(outcome), "HTTP status %d", result->status);
        else
                (void)snprintf(outcome, sizeof(outcome), "no answer: %.200s", result->reason);
        log_info("attempt delivery-id=%s event=%s webhook-id=%s attempt=%u outcome=%s", delivery->id,
                 log_quote(delivery->kind, quoted_kind), queue->target.webhook_id, delivery->n_attempts,
                 log_quote(outcome, quoted));
        if (result->status / 100 == 2) {
                delivery_free(delivery);
        } else if (delivery->n_attempts == MAX_ATTEMPTS) {
                report_failure(delivery, outcome);
                delivery_free(delivery);
        } else {
                delivery->due_us = clock_monotonic_us() + retry_interval_us(delivery);
                wait_until_due(delivery);
        }
}

static void start_due(struct delivery_queue *queue);

static void
on_done(const struct transport_result *result, void *arg)
{
        struct pending_delivery *delivery = arg;
        struct delivery_queue *queue = delivery->queue;

        TAILQ_REMOVE(&queue->in_flight, delivery, entry);
        queue->n_in_flight--;
        settle(delivery, result);
        start_due(queue);
}

/* Make an attempt. A local failure counts as a failed attempt. */
static void
start_attempt(struct pending_delivery *delivery)
{
        const struct transport_result failed = {0, "the attempt could not be made"};
        struct delivery_queue *queue = delivery->queue;
        struct transport_attempt attempt = {.service = queue->settings->service,
                                            .key = queue->target.key,
                                            .url = queue->target.url,
                                            .webhook_id = queue->target.webhook_id,
                                            .delivery_id = delivery->id,
                                            .body = delivery->body,
                                            .len = delivery->len};

        if (delivery->n_attempts == 0 || !queue->settings->sign_once)
                delivery->signed_s = clock_now_ms() / 1000;
        attempt.timestamp = delivery->signed_s;
        delivery->n_attempts++;
        delivery->request = transport_send(queue->settings->transport, &attempt, on_done, delivery);
        if (delivery->request == NULL) {
                settle(delivery, &failed);
                return;
        }
        TAILQ_INSERT_TAIL(&queue->in_flight, delivery, entry);
        queue->n_in_flight++;
}

/* Start the attempts that are due, as many as may be in flight. Have the timer wake up for the next one. */
static void
start_due(struct delivery_queue *queue)
{
        struct pending_delivery *next;

        while (queue->n_in_flight < CONCURRENT_ATTEMPTS && (next = TAILQ_FIRST(&queue->waiting)) != NULL) {
                int64_t wait_us = next->due_us - clock_monotonic_us();
                const struct timeval in = {(time_t)(wait_us / 1000000), (suseconds_t)(wait_us % 1000000)};

                if (wait_us > 0) {
                        (void)evtimer_add(queue->timer, &in);
                        return;
                }
                TAILQ_REMOVE(&queue->waiting, next, entry);
                start_attempt(next);
        }
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        start_due(arg);
}

const char *
delivery_queue_add(struct delivery_queue *queue, const struct outgoing_event *event)
{
        struct pending_delivery *delivery = mem_alloc(sizeof(*delivery));

        delivery->queue = queue;
        (void)bytes_random_uuid(delivery->id);
        delivery->entity = mem_strdup(event->entity);
        delivery->kind = mem_strdup(event->kind);
        delivery->body = mem_strndup(event->body, event->len);
        delivery->len = event->len;
        delivery->due_us = clock_monotonic_us();
        wait_until_due(delivery);
        /* Not now: an attempt may free a delivery, and its id. */
        event_active(queue->timer, EV_TIMEOUT, 0);
        return delivery->id;
}

struct delivery_queue *
delivery_queue_new(const struct delivery_settings *settings, const struct delivery_target *target)
{
        struct delivery_queue *queue = mem_alloc(sizeof(*queue));

        queue->settings = settings;
        queue->target = *target;
        queue->timer = evtimer_new(settings->base, on_timer, queue);
        if (queue->timer == NULL)
                mem_exit();
        TAILQ_INIT(&queue->waiting);
        TAILQ_INIT(&queue->in_flight);
        return queue;
}

void
delivery_queue_free(struct delivery_queue *queue)
{
        struct pending_delivery *delivery;

        if (queue == NULL)
                return;
        while ((delivery = TAILQ_FIRST(&queue->waiting)) != NULL) {
                TAILQ_REMOVE(&queue->waiting, delivery, entry);
                delivery_free(delivery);
        }
        while ((delivery = TAILQ_FIRST(&queue->in_flight)) != NULL) {
                TAILQ_REMOVE(&queue->in_flight, delivery, entry);
                transport_cancel(delivery->request);
                delivery_free(delivery);
        }
        event_free(queue->timer);
        free(queue);
}
