#include "kafka/outage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

/* Different kinds of causes to log in one outage. More come from a flapping network only. */
#define MAX_LOGGED 8

static struct {
        int is_unlogged;
        int is_present;
        int64_t since_s;
        char cause[OUTAGE_CAUSE_SIZE];
        char suspicion[OUTAGE_CAUSE_SIZE];          /* from the last outage_suspect() */
        char logged[MAX_LOGGED][OUTAGE_CAUSE_SIZE]; /* kinds of causes */
        size_t n_logged;
} outage;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects outage */
static atomic_int is_noted; /* an outage or a suspicion; spares those the mutex that succeed */

/* The secret follows the property's name. */
size_t
outage_shown_len(const char *text)
{
        static const char secret[] = "sasl.oauthbearer.config";
        const char *name = strstr(text, secret);

        return name == NULL ? strlen(text) : (size_t)(name - text) + strlen(secret);
}

/* Copy a message of librdkafka, without how long the connection was in which state, which always differs. */
static void
copy_cause(const char *text, char cause[OUTAGE_CAUSE_SIZE])
{
        const char *after = strstr(text, " (after ");
        size_t len = outage_shown_len(text);

        if (after != NULL && strstr(after, "ms in state ") != NULL && (size_t)(after - text) < len)
                len = (size_t)(after - text);
        if (len > OUTAGE_CAUSE_SIZE - 1)
                len = OUTAGE_CAUSE_SIZE - 1;
        while (len > 0 && !text_is_utf8(text, len))
                len--;
        (void)snprintf(cause, OUTAGE_CAUSE_SIZE, "%.*s", (int)len, text);
}

/* Return what two brokers with the same trouble have in common: the end of the message. */
static const char *
kind_of(const char *cause)
{
        const char *kind = cause;

        for (const char *next; (next = strstr(kind, ": ")) != NULL && next[2] != '\0';)
                kind = next + 2;
        return kind;
}

static int
was_logged(const char *kind)
{
        size_t i = 0;

        while (i < outage.n_logged && strcmp(outage.logged[i], kind) != 0)
                i++;
        return i < outage.n_logged;
}

static void
log_cause(const char *cause)
{
        char quoted[LOG_QUOTED_SIZE];

        if (!outage.is_unlogged)
                log_warning("kafka is unreachable; waiting for it reason=%s", log_quote(cause, quoted));
}

static void
begin(void)
{
        if (!outage.is_present)
                outage.since_s = clock_now_ms() / 1000;
        outage.is_present = 1;
        atomic_store(&is_noted, 1);
}

/* The caller holds the mutex. cause may be the suspicion. */
static void
explain(const char *cause)
{
        const char *kind;

        begin();
        copy_cause(cause, outage.cause);
        outage.suspicion[0] = '\0';
        kind = kind_of(outage.cause);
        if (outage.n_logged == MAX_LOGGED || was_logged(kind))
                return;
        (void)snprintf(outage.logged[outage.n_logged++], OUTAGE_CAUSE_SIZE, "%s", kind);
        log_cause(outage.cause);
}

void
outage_end(void)
{
        if (!atomic_load_explicit(&is_noted, memory_order_relaxed))
                return;
        pthread_mutex_lock(&mutex);
        atomic_store(&is_noted, 0);
        if (outage.is_present && !outage.is_unlogged)
                log_notice("kafka is reachable again");
        outage.is_present = 0;
        outage.suspicion[0] = '\0';
        outage.n_logged = 0;
        pthread_mutex_unlock(&mutex);
}

void
outage_note(const char *symptom)
{
        pthread_mutex_lock(&mutex);
        if (outage.suspicion[0] != '\0') {
                explain(outage.suspicion);
        } else if (!outage.is_present) {
                begin();
                copy_cause(symptom, outage.cause);
                log_cause(outage.cause);
        }
        pthread_mutex_unlock(&mutex);
}

void
outage_explain(const char *cause)
{
        pthread_mutex_lock(&mutex);
        explain(cause);
        pthread_mutex_unlock(&mutex);
}

void
outage_suspect(const char *cause)
{
        pthread_mutex_lock(&mutex);
        copy_cause(cause, outage.suspicion);
        atomic_store(&is_noted, 1);
        pthread_mutex_unlock(&mutex);
}

int
outage_read(char cause[OUTAGE_CAUSE_SIZE], int64_t *since_s)
{
        int is_present;

        pthread_mutex_lock(&mutex);
        is_present = outage.is_present;
        memcpy(cause, outage.cause, OUTAGE_CAUSE_SIZE);
        *since_s = outage.since_s;
        pthread_mutex_unlock(&mutex);
        return is_present;
}

int
outage_find_cause(char cause[OUTAGE_CAUSE_SIZE])
{
        const char *found;

        pthread_mutex_lock(&mutex);
        found = outage.is_present && outage.suspicion[0] == '\0' ? outage.cause : outage.suspicion;
        memcpy(cause, found, OUTAGE_CAUSE_SIZE);
        pthread_mutex_unlock(&mutex);
        return cause[0] != '\0';
}

void
outage_set_logging(int is_on)
{
        pthread_mutex_lock(&mutex);
        outage.is_unlogged = !is_on;
        pthread_mutex_unlock(&mutex);
}

const char *
outage_describe(const char *what, char *text, size_t size)
{
        char cause[OUTAGE_CAUSE_SIZE];
        int64_t since_s;

        if (outage_read(cause, &since_s))
                (void)snprintf(text, size, "%s: %s", what, cause);
        else
                (void)snprintf(text, size, "%s", what);
        return text;
}
