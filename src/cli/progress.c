#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SHOW_EVERY_MS 200
#define STEPS_A_LOOK 256 /* at the clock */

static void
show(struct progress *progress)
{
        progress->shown_ms = clock_monotonic_ms();
        fprintf(stderr, "\r\033[K%s: %" PRIu64 " of about %" PRIu64, progress->what, progress->n,
                progress->n_all);
        (void)fflush(stderr);
}

void
progress_begin(struct progress *progress, const char *what, uint64_t n_all)
{
        (void)snprintf(progress->what, sizeof(progress->what), "%s", what);
        progress->n = 0;
        progress->n_all = n_all;
        progress->is_shown = isatty(STDERR_FILENO);
        if (progress->is_shown)
                show(progress);
}

void
progress_step(struct progress *progress)
{
        progress->n++;
        if (progress->is_shown && progress->n % STEPS_A_LOOK == 0 &&
            clock_monotonic_ms() - progress->shown_ms >= SHOW_EVERY_MS)
                show(progress);
}

void
progress_end(struct progress *progress)
{
        if (progress->is_shown)
                fprintf(stderr, "\r\033[K");
        progress->is_shown = 0;
}

uint64_t
progress_count(const struct range *ranges, size_t n)
{
        uint64_t count = 0;

        for (size_t i = 0; i < n; i++) {
                if (ranges[i].to > ranges[i].from)
                        count += (uint64_t)(ranges[i].to - ranges[i].from);
        }
        return count;
}
