#include "cli/wait_note.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define AFTER_MS 1500

/*
 * The note needs a thread of its own, as the calls of libcurl and librdkafka block, and a signal would
 * interrupt them.
 */
static struct {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t ended;
        int is_running, has_ended;
        char *what;
        long most_ms;
} note;

static void
print(void)
{
        fputs("waiting for ", stderr);
        text_print(stderr, note.what, strlen(note.what));
        fprintf(stderr, " (%g s at most)\n", (double)note.most_ms / 1000);
}

static void *
run(void *arg)
{
        struct timespec end;
        int timed_out = 0;

        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += (AFTER_MS % 1000) * 1000000L;
        end.tv_sec += AFTER_MS / 1000 + end.tv_nsec / 1000000000L;
        end.tv_nsec %= 1000000000L;
        pthread_mutex_lock(&note.mutex);
        while (!note.has_ended && !timed_out)
                timed_out = pthread_cond_timedwait(&note.ended, &note.mutex, &end) != 0;
        if (!note.has_ended)
                print();
        pthread_mutex_unlock(&note.mutex);
        return arg;
}

void
wait_note_begin(const char *what, long most_ms)
{
        pthread_condattr_t attributes;

        if (!isatty(STDERR_FILENO) || note.is_running || most_ms <= AFTER_MS)
                return;
        note.what = mem_strdup(what);
        note.most_ms = most_ms;
        note.has_ended = 0;
        pthread_mutex_init(&note.mutex, NULL);
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&note.ended, &attributes);
        pthread_condattr_destroy(&attributes);
        note.is_running = pthread_create(&note.thread, NULL, run, NULL) == 0;
        if (!note.is_running)
                free(note.what);
}

void
wait_note_end(void)
{
        if (!note.is_running)
                return;
        pthread_mutex_lock(&note.mutex);
        note.has_ended = 1;
        pthread_cond_signal(&note.ended);
        pthread_mutex_unlock(&note.mutex);
        pthread_join(note.thread, NULL);
        pthread_cond_destroy(&note.ended);
        pthread_mutex_destroy(&note.mutex);
        free(note.what);
        note.is_running = 0;
}
