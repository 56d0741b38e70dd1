#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define LOG_INTERVAL_S 10

void
process_open_standard_files(void)
{
        /*
         * Opened for the wrong direction, so that using them fails; an error on standard error cannot be
         * reported anyway.
         */
        static const int modes[] = {
            [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                if (fcntl(fd, F_GETFD) < 0)
                        (void)open("/dev/null", modes[fd]); /* gets the lowest free number, which is fd */
        }
}

int
process_join_within(pthread_t thread, int seconds)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += seconds;
        return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT ? -1 : 0;
}

void
process_join(pthread_t thread, const char *what)
{
        int waited_s = 0;

        while (process_join_within(thread, LOG_INTERVAL_S) != 0) {
                waited_s += LOG_INTERVAL_S;
                log_warning("shutdown is slow waits_for=%s seconds=%d", what, waited_s);
        }
}

void
process_raise_descriptors(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
}
