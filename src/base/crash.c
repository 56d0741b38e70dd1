#include "base/crash.h"

#ifdef GATEPOST_CRASH_POINTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Return whether the variable names this point; then *after is the number of times to pass it alive. */
static int
is_chosen(const char *name, long *after)
{
        const char *chosen = getenv("GATEPOST_CRASH_POINT");
        size_t len = strlen(name);

        if (chosen == NULL || strncmp(chosen, name, len) != 0)
                return 0;
        *after = chosen[len] == ':' ? strtol(chosen + len + 1, NULL, 10) - 1 : 0;
        return chosen[len] == ':' || chosen[len] == '\0';
}

void
crash_point(const char *name)
{
        static atomic_long n_passed;
        long after;

        if (is_chosen(name, &after) && atomic_fetch_add(&n_passed, 1) >= after)
                (void)raise(SIGKILL);
}

#else

typedef int crash_is_not_compiled_in; /* ISO C requires a declaration */

#endif
