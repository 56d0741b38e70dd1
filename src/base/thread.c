#include "base/thread.h"

#include <errno.h>
#include <time.h>

#include "base/log.h"

#define PATIENCE_S 10

void
thread_join(pthread_t thread, const char *what)
{
        struct timespec until;

        for (int waited_s = PATIENCE_S;; waited_s += PATIENCE_S) {
                (void)clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_sec += PATIENCE_S;
                if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
                        return;
                log_warning("stopping takes long waits_for=%s seconds=%d", what, waited_s);
        }
}
