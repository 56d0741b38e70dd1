#include "kafka/commit_watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

#define LIMIT_MS 10000

struct commit_watchdog {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        int *fds; /* open ones */
        size_t n;
        int64_t due_ms; /* monotonic: when to shut them down; 0: no call is in progress */
        int ending;
};

/* The descriptors still belong to the client: they are closed under the same mutex. */
static void
shut_all(const struct commit_watchdog *watchdog)
{
        log_info("a commit takes long; reconnecting to all brokers n=%zu", watchdog->n);
        for (size_t i = 0; i < watchdog->n; i++)
                (void)shutdown(watchdog->fds[i], SHUT_RDWR);
}

static void *
run(void *arg)
{
        struct commit_watchdog *watchdog = arg;

        (void)pthread_setname_np(pthread_self(), "commit-watchdog");
        pthread_mutex_lock(&watchdog->mutex);
        while (!watchdog->ending) {
                int64_t due_ms = watchdog->due_ms;
                const struct timespec due = {due_ms / 1000, due_ms % 1000 * 1000000};

                if (due_ms == 0) {
                        (void)pthread_cond_wait(&watchdog->changed, &watchdog->mutex);
                } else if (clock_monotonic_ms() < due_ms) {
                        (void)pthread_cond_clockwait(&watchdog->changed, &watchdog->mutex, CLOCK_MONOTONIC,
                                                     &due);
                } else {
                        shut_all(watchdog);
                        watchdog->due_ms = clock_monotonic_ms() + LIMIT_MS;
                }
        }
        pthread_mutex_unlock(&watchdog->mutex);
        return NULL;
}

struct commit_watchdog *
commit_watchdog_new(struct error *error)
{
        struct commit_watchdog *watchdog = mem_alloc(sizeof(*watchdog));

        pthread_mutex_init(&watchdog->mutex, NULL);
        pthread_cond_init(&watchdog->changed, NULL);
        if (pthread_create(&watchdog->thread, NULL, run, watchdog) != 0) {
                (void)error_set(error, "cannot start a thread");
                free(watchdog);
                return NULL;
        }
        return watchdog;
}

void
commit_watchdog_free(struct commit_watchdog *watchdog)
{
        if (watchdog == NULL)
                return;
        pthread_mutex_lock(&watchdog->mutex);
        watchdog->ending = 1;
        pthread_cond_signal(&watchdog->changed);
        pthread_mutex_unlock(&watchdog->mutex);
        process_join(watchdog->thread, "commit-watchdog");
        free(watchdog->fds);
        free(watchdog);
}

static int
add_fd(struct commit_watchdog *watchdog, int fd)
{
        int *fds;

        pthread_mutex_lock(&watchdog->mutex);
        fds = realloc(watchdog->fds, (watchdog->n + 1) * sizeof(*fds));
        if (fds != NULL) {
                watchdog->fds = fds;
                fds[watchdog->n++] = fd;
        }
        pthread_mutex_unlock(&watchdog->mutex);
        return fds == NULL ? -1 : 0;
}

int
commit_watchdog_open(struct commit_watchdog *watchdog, int domain, int type, int protocol)
{
        int fd = socket(domain, type | SOCK_CLOEXEC, protocol);

        if (fd >= 0 && add_fd(watchdog, fd) != 0) {
                (void)close(fd);
                errno = ENOMEM;
                return -1;
        }
        return fd;
}

int
commit_watchdog_close(struct commit_watchdog *watchdog, int fd)
{
        size_t i = 0;
        int result;

        pthread_mutex_lock(&watchdog->mutex);
        while (i < watchdog->n && watchdog->fds[i] != fd)
                i++;
        if (i < watchdog->n)
                watchdog->fds[i] = watchdog->fds[--watchdog->n];
        result = close(fd);
        pthread_mutex_unlock(&watchdog->mutex);
        return result;
}

void
commit_watchdog_begin(struct commit_watchdog *watchdog)
{
        pthread_mutex_lock(&watchdog->mutex);
        watchdog->due_ms = clock_monotonic_ms() + LIMIT_MS;
        pthread_cond_signal(&watchdog->changed);
        pthread_mutex_unlock(&watchdog->mutex);
}

void
commit_watchdog_end(struct commit_watchdog *watchdog)
{
        pthread_mutex_lock(&watchdog->mutex);
        watchdog->due_ms = 0;
        pthread_mutex_unlock(&watchdog->mutex);
}
