#include "base/log_flood.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define INTERVAL_MS 1000

static LIST_HEAD(floods, log_flood) holding = LIST_HEAD_INITIALIZER(holding);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all floods */

/*
 * Keep an event's text instead of that of the previous event. If text is NULL, because memory failed, keep
 * the previous one.
 */
static void
hold_back(struct log_flood *flood, enum log_level level, char *text)
{
        if (flood->n_held_back++ == 0)
                LIST_INSERT_HEAD(&holding, flood, entry);
        if (text == NULL)
                return;
        free(flood->text);
        flood->text = text;
        flood->level = level;
}

/* Discard the events held back. Return their number. */
static uint64_t
release_held(struct log_flood *flood)
{
        uint64_t n = flood->n_held_back;

        if (n > 0)
                LIST_REMOVE(flood, entry);
        flood->n_held_back = 0;
        free(flood->text);
        flood->text = NULL;
        return n;
}

/*
 * Return 1 if a line may be written now, for *n events. Else hold the event back, take ownership of text, and
 * return 0.
 */
static int
pass(struct log_flood *flood, enum log_level level, char *text, uint64_t *n)
{
        int64_t now = clock_coarse_ms();
        int passes;

        pthread_mutex_lock(&mutex);
        passes = flood->last_ms == 0 || now - flood->last_ms >= INTERVAL_MS;
        if (passes) {
                flood->last_ms = now;
                *n = release_held(flood) + 1;
        } else {
                hold_back(flood, level, text);
        }
        pthread_mutex_unlock(&mutex);
        return passes;
}

/* Write a line for n events. */
static void
write_sum(enum log_level level, const char *text, uint64_t n)
{
        if (n == 1)
                log_line(level, "%s", text);
        else
                log_line(level, "%s n=%" PRIu64, text, n);
}

void
log_flood(struct log_flood *flood, enum log_level level, const char *format, ...)
{
        char *text;
        uint64_t n;
        va_list args;

        if (!log_is_on(level))
                return;
        va_start(args, format);
        if (vasprintf(&text, format, args) < 0)
                text = NULL;
        va_end(args);
        if (!pass(flood, level, text, &n))
                return;
        if (text != NULL)
                write_sum(level, text, n);
        free(text);
}

/* Log the events held back. The caller holds the mutex. */
static void
report_held(struct log_flood *flood)
{
        if (flood->text != NULL)
                write_sum(flood->level, flood->text, flood->n_held_back);
        flood->last_ms = clock_coarse_ms();
        (void)release_held(flood);
}

void
log_flood_report(void)
{
        int64_t now = clock_coarse_ms();
        struct log_flood *flood, *next;

        pthread_mutex_lock(&mutex);
        for (flood = LIST_FIRST(&holding); flood != NULL; flood = next) {
                next = LIST_NEXT(flood, entry);
                if (now - flood->last_ms >= INTERVAL_MS)
                        report_held(flood);
        }
        pthread_mutex_unlock(&mutex);
}

void
log_flood_end(struct log_flood *flood)
{
        pthread_mutex_lock(&mutex);
        if (flood->n_held_back > 0)
                report_held(flood);
        pthread_mutex_unlock(&mutex);
}

void
log_flood_end_all(void)
{
        struct log_flood *flood;

        pthread_mutex_lock(&mutex);
        while ((flood = LIST_FIRST(&holding)) != NULL)
                report_held(flood);
        pthread_mutex_unlock(&mutex);
}
