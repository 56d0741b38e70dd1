#include "kafka/rouser.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

#define PATIENCE_MS 10000

struct rouser {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        int *fds; /* open ones */
        size_t n;
        int64_t due_ms; /* monotonic: when to shut them; 0: no call is under way */
        int ending;
};

/* A descriptor is closed under the same mutex, so that it is still the client's here. */
static void
shut_all(const struct rouser *rouser)
{
        log_info("a commit takes long, all connections are made anew n=%zu", rouser->n);
        for (size_t i = 0; i < rouser->n; i++)
                (void)shutdown(rouser->fds[i], SHUT_RDWR);
}

static void *
run(void *arg)
{
        struct rouser *rouser = arg;

        (void)pthread_setname_np(pthread_self(), "rouser");
        pthread_mutex_lock(&rouser->mutex);
        while (!rouser->ending) {
                int64_t due_ms = rouser->due_ms;
                const struct timespec due = {due_ms / 1000, due_ms % 1000 * 1000000};

                if (due_ms == 0) {
                        (void)pthread_cond_wait(&rouser->changed, &rouser->mutex);
                } else if (clock_monotonic_ms() < due_ms) {
                        (void)pthread_cond_clockwait(&rouser->changed, &rouser->mutex, CLOCK_MONOTONIC, &due);
                } else {
                        shut_all(rouser);
                        rouser->due_ms = clock_monotonic_ms() + PATIENCE_MS;
                }
        }
        pthread_mutex_unlock(&rouser->mutex);
        return NULL;
}

struct rouser *
rouser_new(struct error *error)
{
        struct rouser *rouser = mem_alloc(sizeof(*rouser));

        pthread_mutex_init(&rouser->mutex, NULL);
        pthread_cond_init(&rouser->changed, NULL);
        if (pthread_create(&rouser->thread, NULL, run, rouser) != 0) {
                (void)error_set(error, "a thread does not start");
                free(rouser);
                return NULL;
        }
        return rouser;
}

void
rouser_free(struct rouser *rouser)
{
        if (rouser == NULL)
                return;
        pthread_mutex_lock(&rouser->mutex);
        rouser->ending = 1;
        pthread_cond_signal(&rouser->changed);
        pthread_mutex_unlock(&rouser->mutex);
        process_join(rouser->thread, "rouser");
        free(rouser->fds);
        free(rouser);
}

static int
keep(struct rouser *rouser, int fd)
{
        int *fds;

        pthread_mutex_lock(&rouser->mutex);
        fds = realloc(rouser->fds, (rouser->n + 1) * sizeof(*fds));
        if (fds != NULL) {
                rouser->fds = fds;
                fds[rouser->n++] = fd;
        }
        pthread_mutex_unlock(&rouser->mutex);
        return fds == NULL ? -1 : 0;
}

int
rouser_open(struct rouser *rouser, int domain, int type, int protocol)
{
        int fd = socket(domain, type | SOCK_CLOEXEC, protocol);

        if (fd >= 0 && keep(rouser, fd) != 0) {
                (void)close(fd);
                errno = ENOMEM;
                return -1;
        }
        return fd;
}

int
rouser_close(struct rouser *rouser, int fd)
{
        size_t i = 0;
        int result;

        pthread_mutex_lock(&rouser->mutex);
        while (i < rouser->n && rouser->fds[i] != fd)
                i++;
        if (i < rouser->n)
                rouser->fds[i] = rouser->fds[--rouser->n];
        result = close(fd);
        pthread_mutex_unlock(&rouser->mutex);
        return result;
}

void
rouser_begin(struct rouser *rouser)
{
        pthread_mutex_lock(&rouser->mutex);
        rouser->due_ms = clock_monotonic_ms() + PATIENCE_MS;
        pthread_cond_signal(&rouser->changed);
        pthread_mutex_unlock(&rouser->mutex);
}

void
rouser_end(struct rouser *rouser)
{
        pthread_mutex_lock(&rouser->mutex);
        rouser->due_ms = 0;
        pthread_mutex_unlock(&rouser->mutex);
}
