#include "base/log_flood.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define INTERVAL_MS 1000

static LIST_HEAD(floods, log_flood) holding = LIST_HEAD_INITIALIZER(holding);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* over all floods */

/* Keep what an event says, in place of what the one before said. Without memory that stays. */
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

/* Nothing is held back any more. Returns how many events were. */
static uint64_t
let_go(struct log_flood *flood)
{
        uint64_t n = flood->n_held_back;

        if (n > 0)
                LIST_REMOVE(flood, entry);
        flood->n_held_back = 0;
        free(flood->text);
        flood->text = NULL;
        return n;
}

/* Returns 1 when a line may be written now, for *n events; 0 when this one, whose text is taken over, is held back. */
static int
pass(struct log_flood *flood, enum log_level level, char *text, uint64_t *n)
{
        int64_t now = clock_coarse_ms();
        int passes;

        pthread_mutex_lock(&mutex);
        passes = flood->last_ms == 0 || now - flood->last_ms >= INTERVAL_MS;
        if (passes) {
                flood->last_ms = now;
                *n = let_go(flood) + 1;
        } else {
                hold_back(flood, level, text);
        }
        pthread_mutex_unlock(&mutex);
        return passes;
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
                log_line(level, "%s n=%" PRIu64, text, n);
        free(text);
}

/* With the mutex held. */
static void
tell(struct log_flood *flood)
{
        if (flood->text != NULL)
                log_line(flood->level, "%s n=%" PRIu64, flood->text, flood->n_held_back);
        flood->last_ms = clock_coarse_ms();
        (void)let_go(flood);
}

void
log_flood_tell(void)
{
        int64_t now = clock_coarse_ms();
        struct log_flood *flood, *next;

        pthread_mutex_lock(&mutex);
        for (flood = LIST_FIRST(&holding); flood != NULL; flood = next) {
                next = LIST_NEXT(flood, entry);
                if (now - flood->last_ms >= INTERVAL_MS)
                        tell(flood);
        }
        pthread_mutex_unlock(&mutex);
}

void
log_flood_end(struct log_flood *flood)
{
        pthread_mutex_lock(&mutex);
        if (flood->n_held_back > 0)
                tell(flood);
        pthread_mutex_unlock(&mutex);
}

void
log_flood_end_all(void)
{
        struct log_flood *flood;

        pthread_mutex_lock(&mutex);
        while ((flood = LIST_FIRST(&holding)) != NULL)
                tell(flood);
        pthread_mutex_unlock(&mutex);
}
