#include "sandbox/courier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "sandbox/mail.h"
#include "sandbox/retry.h"
#include "sandbox/signed_post.h"
#include "sandbox/transport.h"

#define JOBS_MAX 100000
#define BYTES_MAX ((size_t)256 << 20)
#define AT_A_TIME 8 /* attempts under way for one subscription */

/* One delivery, on its way. */
struct delivery_job {
        TAILQ_ENTRY(delivery_job) entry;     /* while it waits: in its subscription's list */
        TAILQ_ENTRY(delivery_job) all_entry; /* in the courier's list of all */
        struct courier *courier;
        struct subscription *subscription;
        struct event *timer;       /* until the next attempt */
        struct transfer *transfer; /* an attempt that is under way, or NULL */
        char id[BYTES_UUID_SIZE];
        char *entity;
        char *kind;
        char *body;
        size_t len;
        unsigned n_attempts;
        int64_t due_ms;   /* when the next attempt is, while none is under way */
        int64_t signed_s; /* the timestamp of the last attempt; 0: none was made */
        int waits;        /* is in its subscription's list */
};

struct courier {
        struct event_base *base;
        struct courier_settings settings;
        struct transport *transport;
        struct delivery_jobs jobs;
        size_t n_jobs;
        size_t n_bytes;
};

static void
job_free(struct delivery_job *job)
{
        struct courier *courier = job->courier;

        if (job->waits)
                TAILQ_REMOVE(&job->subscription->waiting, job, entry);
        if (job->transfer != NULL) {
                transport_cancel(job->transfer);
                job->subscription->n_under_way--;
        }
        if (job->timer != NULL)
                event_free(job->timer);
        TAILQ_REMOVE(&courier->jobs, job, all_entry);
        courier->n_jobs--;
        courier->n_bytes -= job->len;
        free(job->entity);
        free(job->kind);
        free(job->body);
        free(job);
}

static void
send_mail(const struct delivery_job *job, const char *outcome)
{
        const struct courier_settings *settings = &job->courier->settings;
        const struct mail mail = {.entity = job->entity,
                                  .kind = job->kind,
                                  .url = job->subscription->url,
                                  .webhook_id = job->subscription->id,
                                  .delivery_id = job->id,
                                  .last_outcome = outcome,
                                  .n_attempts = job->n_attempts};
        const char *told = "none";
        struct error error;

        if (settings->outbox != NULL) {
                told = "outbox";
                if (mail_write(settings->outbox, &mail, &error) != 0) {
                        log_error("the mail could not be written: %s", error.text);
                        told = "failed";
                }
        }
        log_warning("delivery given up delivery-id=%s event=%s attempts=%u mail=%s", job->id, job->kind,
                    job->n_attempts, told);
}

static int64_t
next_due_ms(const struct delivery_job *job)
{
        return clock_now_ms() +
               (int64_t)retry_delay_ms(job->courier->settings.retry_base_ms, job->n_attempts);
}

/* Never longer than the interval: the wall clock may have been set back since. */
static void
wait_until_due(struct delivery_job *job)
{
        int64_t ms = job->due_ms - clock_now_ms(), most_ms = next_due_ms(job) - clock_now_ms();
        struct timeval in;

        ms = ms < 0 ? 0 : ms > most_ms ? most_ms : ms;
        in = (struct timeval){(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
        (void)evtimer_add(job->timer, &in);
}

static void
note_change(const struct courier *courier)
{
        courier->settings.changed(courier->settings.arg);
}

static void start_those_waiting(struct subscription *subscription);

/* An attempt has ended. */
static void
settle(struct delivery_job *job, const struct transport_result *result)
{
        char outcome[256], quoted[LOG_QUOTED_SIZE];

        if (result->status != 0)
                (void)snprintf(outcome, sizeof(outcome), "HTTP status %d", result->status);
        else
                (void)snprintf(outcome, sizeof(outcome), "no answer: %.200s", result->reason);
        log_info("attempt delivery-id=%s event=%s webhook-id=%s attempt=%u outcome=%s", job->id, job->kind,
                 job->subscription->id, job->n_attempts, log_quote(outcome, quoted));
        note_change(job->courier);
        if (result->status / 100 == 2) {
                job_free(job);
        } else if (job->n_attempts == RETRY_MAX_ATTEMPTS) {
                send_mail(job, outcome);
                job_free(job);
        } else {
                job->due_ms = next_due_ms(job);
                wait_until_due(job);
        }
}

static void
on_done(const struct transport_result *result, void *arg)
{
        struct delivery_job *job = arg;
        struct subscription *subscription = job->subscription;

        job->transfer = NULL;
        subscription->n_under_way--;
        settle(job, result);
        start_those_waiting(subscription);
}

/* One attempt. What fails on this side counts as one, too. */
static void
attempt(struct delivery_job *job)
{
        const struct transport_result failed = {0, "the attempt could not be made"};
        struct signed_post post = {.service = job->courier->settings.service,
                                   .key = job->subscription->key,
                                   .url = job->subscription->url,
                                   .webhook_id = job->subscription->id,
                                   .delivery_id = job->id,
                                   .body = job->body,
                                   .len = job->len};

        if (job->signed_s == 0 || !job->courier->settings.sign_once)
                job->signed_s = clock_now_ms() / 1000;
        post.timestamp = job->signed_s;
        job->n_attempts++;
        note_change(job->courier);
        job->transfer = signed_post_start(job->courier->transport, &post, on_done, job);
        if (job->transfer != NULL)
                job->subscription->n_under_way++;
        else
                settle(job, &failed);
}

static void
start_those_waiting(struct subscription *subscription)
{
        struct delivery_job *job;

        while (subscription->n_under_way < AT_A_TIME && (job = TAILQ_FIRST(&subscription->waiting)) != NULL) {
                TAILQ_REMOVE(&subscription->waiting, job, entry);
                job->waits = 0;
                attempt(job);
        }
}

/* Begin to wait for its turn. */
static void
on_due(evutil_socket_t fd, short what, void *arg)
{
        struct delivery_job *job = arg;

        (void)fd;
        (void)what;
        job->waits = 1;
        TAILQ_INSERT_TAIL(&job->subscription->waiting, job, entry);
        start_those_waiting(job->subscription);
}

/* A new one, without an id. NULL: there are too many. */
static struct delivery_job *
add_job(struct courier *courier, struct subscription *subscription, const struct courier_event *event)
{
        struct delivery_job *job;

        if (courier->n_jobs == JOBS_MAX || event->len > BYTES_MAX - courier->n_bytes) {
                static struct log_flood flood;

                log_flood(&flood, LOG_LEVEL_ERROR, "too many deliveries wait; dropped");
                return NULL;
        }
        job = mem_alloc(sizeof(*job));
        job->courier = courier;
        job->subscription = subscription;
        job->entity = mem_strdup(event->entity);
        job->kind = mem_strdup(event->kind);
        job->body = mem_strndup(event->body, event->len);
        job->len = event->len;
        TAILQ_INSERT_TAIL(&courier->jobs, job, all_entry);
        courier->n_jobs++;
        courier->n_bytes += job->len;
        job->timer = evtimer_new(courier->base, on_due, job);
        if (job->timer != NULL)
                return job;
        job_free(job);
        return NULL;
}

const char *
courier_send(struct courier *courier, struct subscription *subscription, const struct courier_event *event)
{
        struct delivery_job *job = add_job(courier, subscription, event);

        if (job == NULL)
                return NULL;
        (void)bytes_random_uuid(job->id);
        job->due_ms = clock_now_ms();
        note_change(courier);
        event_active(job->timer, EV_TIMEOUT, 0); /* not from here: the caller still wants its id */
        return job->id;
}

int
courier_resume(struct courier *courier, struct subscription *subscription,
               const struct courier_pending *pending)
{
        struct delivery_job *job = add_job(courier, subscription, &pending->event);

        if (job == NULL)
                return -1;
        (void)snprintf(job->id, sizeof(job->id), "%s", pending->id);
        job->n_attempts = pending->n_attempts;
        job->due_ms = pending->due_ms;
        job->signed_s = pending->signed_s;
        if (job->n_attempts < RETRY_MAX_ATTEMPTS) {
                wait_until_due(job);
        } else {
                send_mail(job, "not known: the service was restarted meanwhile");
                job_free(job);
        }
        return 0;
}

void
courier_each(const struct courier *courier,
             void (*visit)(const struct subscription *subscription, const struct courier_pending *pending,
                           void *arg),
             void *arg)
{
        const struct delivery_job *job;

        TAILQ_FOREACH(job, &courier->jobs, all_entry)
        {
                const struct courier_pending pending = {.id = job->id,
                                                        .event = {job->entity, job->kind, job->body,
                                                                  job->len},
                                                        .n_attempts = job->n_attempts,
                                                        .signed_s = job->signed_s,
                                                        .due_ms = job->transfer == NULL ? job->due_ms
                                                                                        : next_due_ms(job)};

                visit(job->subscription, &pending, arg);
        }
}

void
courier_forget(struct courier *courier, struct subscription *subscription)
{
        struct delivery_job *job = TAILQ_FIRST(&courier->jobs);

        while (job != NULL) {
                struct delivery_job *next = TAILQ_NEXT(job, all_entry);

                if (job->subscription == subscription)
                        job_free(job);
                job = next;
        }
}

size_t
courier_n_jobs(const struct courier *courier)
{
        return courier->n_jobs;
}

struct courier *
courier_new(struct event_base *base, const struct courier_settings *settings)
{
        struct courier *courier = mem_alloc(sizeof(*courier));

        TAILQ_INIT(&courier->jobs);
        courier->base = base;
        courier->settings = *settings;
        courier->transport = transport_new(base, settings->ca_file, SUBSCRIPTIONS_MAX);
        if (courier->transport != NULL)
                return courier;
        free(courier);
        return NULL;
}

void
courier_free(struct courier *courier)
{
        struct delivery_job *job;

        if (courier == NULL)
                return;
        while ((job = TAILQ_FIRST(&courier->jobs)) != NULL)
                job_free(job);
        transport_free(courier->transport);
        free(courier);
}
