/*
 * A library to preload whose realtime clock can be set while the process runs: the file FAKE_CLOCK_FILE holds
 * an int64_t, the milliseconds by which the clock is ahead of the machine's. Timed waits on C11 condition
 * variables use it like the kernel uses the machine's clock: they end when the clock reaches the deadline, so
 * setting it back prolongs them. (libfaketime does not support these waits, and ends others after the time
 * that remained when they began.)
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_MS 10 /* interval at which a wait checks the clock */
#define MS_NS 1000000L
#define SECOND_NS 1000000000L

static const volatile int64_t *ahead_ms;
static int (*real_cnd_timedwait)(cnd_t *, mtx_t *, const struct timespec *);

static void __attribute__((constructor)) begin(void)
{
        const char *path = getenv("FAKE_CLOCK_FILE");
        int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*ahead_ms), PROT_READ, MAP_SHARED, fd, 0);

        if (memory == MAP_FAILED)
                abort();
        (void)close(fd);
        ahead_ms = memory;
        real_cnd_timedwait =
            (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT, "cnd_timedwait");
}

static void
add_ms(struct timespec *time, int64_t ms)
{
        int64_t ns = time->tv_nsec + ms % 1000 * MS_NS;

        time->tv_sec += ms / 1000 + (ns >= SECOND_NS) - (ns < 0);
        time->tv_nsec = (ns + SECOND_NS) % SECOND_NS;
}

int
clock_gettime(clockid_t id, struct timespec *time)
{
        int result = (int)syscall(SYS_clock_gettime, id, time);

        if (result == 0 && ahead_ms != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
                add_ms(time, *ahead_ms);
        return result;
}

int
timespec_get(struct timespec *time, int base)
{
        return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

int
gettimeofday(struct timeval *restrict time, void *restrict zone)
{
        struct timespec now;

        (void)zone;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
        return 0;
}

time_t
time(time_t *seconds)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        if (seconds != NULL)
                *seconds = now.tv_sec;
        return now.tv_sec;
}

/*
 * Wait for a moment, and then return as if signalled: a spurious wake-up, which C11 allows. The caller checks
 * its condition again, as a real signal may have arrived just when the moment was over.
 */
int
cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
        struct timespec now, moment;
        int result;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > deadline->tv_sec ||
            (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec))
                return thrd_timedout;
        (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &moment);
        add_ms(&moment, MOMENT_MS);
        result = real_cnd_timedwait(condition, mutex, &moment);
        return result == thrd_timedout ? thrd_success : result;
}
