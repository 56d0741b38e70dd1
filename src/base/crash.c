#include "base/crash.h"

#ifdef GATEPOST_CRASH_POINTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* `NAME` or `NAME:N` from the environment; NULL: none, and then a point costs next to nothing. */
static const char *chosen;

__attribute__((constructor)) static void
read_environment(void)
{
        chosen = getenv("GATEPOST_CRASH_POINT");
}

/* Return whether this point is chosen; then *after is the number of times to pass it alive. */
static int
is_chosen(const char *name, long *after)
{
        size_t len = strlen(name);

        if (strncmp(chosen, name, len) != 0)
                return 0;
        *after = chosen[len] == ':' ? strtol(chosen + len + 1, NULL, 10) - 1 : 0;
        return chosen[len] == ':' || chosen[len] == '\0';
}

void
crash_point(const char *name)
{
        static atomic_long n_passed;
        long after;

        if (chosen != NULL && is_chosen(name, &after) && atomic_fetch_add(&n_passed, 1) >= after)
                (void)raise(SIGKILL);
}

#else

typedef int crash_is_not_compiled_in; /* ISO C requires a declaration */

#endif
