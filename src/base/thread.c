#include "base/thread.h"

#include <errno.h>
#include <time.h>

#include "base/log.h"

#define PATIENCE_S 10

int
thread_join_within(pthread_t thread, int seconds)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += seconds;
        return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT ? -1 : 0;
}

void
thread_join(pthread_t thread, const char *what)
{
        int waited_s = 0;

        while (thread_join_within(thread, PATIENCE_S) != 0) {
                waited_s += PATIENCE_S;
                log_warning("stopping takes long waits_for=%s seconds=%d", what, waited_s);
        }
}
