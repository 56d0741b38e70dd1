#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Read the number after a name in a file, or the first one if the name is NULL. Returns -1 without any. */
static int64_t
read_number(const char *path, const char *name)
{
        FILE *file = fopen(path, "re");
        char line[256];
        int64_t number = -1;

        while (file != NULL && number < 0 && fgets(line, sizeof(line), file) != NULL) {
                size_t len = name == NULL ? 0 : strlen(name);

                if ((name == NULL || strncmp(line, name, len) == 0) && line[len] >= ' ' &&
                    strpbrk(line + len, "0123456789") != NULL)
                        number = strtoll(strpbrk(line + len, "0123456789"), NULL, 10);
        }
        if (file != NULL)
                (void)fclose(file);
        return number;
}

/* Return what the control group (version 2) of this process may still take, or -1. */
static int64_t
left_in_control_group(void)
{
        char path[512], name[256] = "";
        FILE *file = fopen("/proc/self/cgroup", "re");
        int64_t max, current;

        if (file == NULL)
                return -1;
        while (fgets(path, sizeof(path), file) != NULL)
                (void)sscanf(path, "0::%255[^\n]", name);
        (void)fclose(file);
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", name);
        max = read_number(path, NULL); /* `max`: no limit */
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", name);
        current = read_number(path, NULL);
        return max < 0 || current < 0 ? -1 : max > current ? max - current : 0;
}

int64_t
process_available_memory(void)
{
        int64_t kib = read_number("/proc/meminfo", "MemAvailable:"), in_group = left_in_control_group();
        int64_t available = kib < 0 ? -1 : kib * 1024;

        return in_group >= 0 && (available < 0 || in_group < available) ? in_group : available;
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
