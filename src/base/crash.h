#ifndef BASE_CRASH_H
#define BASE_CRASH_H

/*
 * Points at which a process can be made to die as by SIGKILL, to test that it survives dying there. Compiled
 * in only by `configure --enable-crash-points`. The environment variable GATEPOST_CRASH_POINT chooses one:
 * `NAME`, or `NAME:N` for the Nth time that the process reaches it. All points of a name are in one file.
 */
#ifdef GATEPOST_CRASH_POINTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The point that the environment chooses, or NULL; read once, so that a point costs next to nothing. */
static const char *crash_chosen;

__attribute__((constructor)) static void
crash_read_environment(void)
{
        crash_chosen = getenv("GATEPOST_CRASH_POINT");
}

static inline void
crash_point(const char *name)
{
        static atomic_long n_reached;
        const char *chosen = crash_chosen;
        size_t len = strlen(name);
        long n;

        if (chosen == NULL || strncmp(chosen, name, len) != 0 || (chosen[len] != ':' && chosen[len] != '\0'))
                return;
        n = chosen[len] == ':' ? strtol(chosen + len + 1, NULL, 10) : 1;
        if (atomic_fetch_add(&n_reached, 1) + 1 >= n)
                (void)raise(SIGKILL);
}

/* A limit that the environment variable lowers, so that a test need not produce much. */
static inline size_t
crash_limit(const char *variable, size_t limit)
{
        const char *text = getenv(variable);

        return text == NULL ? limit : (size_t)strtoul(text, NULL, 10);
}

#else
#define crash_point(name) ((void)0)
#define crash_limit(variable, limit) (limit)
#endif

#endif
