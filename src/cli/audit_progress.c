#include "cli/audit_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SHOW_EVERY_MS 200
#define RECORDS_A_LOOK 256 /* at the clock */

static void
show(struct audit_progress *progress)
{
        progress->shown_ms = clock_monotonic_ms();
        fprintf(stderr, "\r\033[Kpass %zu, reading %s: %" PRIu64 " of about %" PRIu64, progress->pass,
                progress->what, progress->n, progress->n_all);
        (void)fflush(stderr);
}

void
audit_progress_begin(struct audit_progress *progress, const char *what, size_t n_passes,
                     const struct range *ranges, size_t n)
{
        progress->what = what;
        progress->pass = n_passes + 1;
        progress->n = 0;
        progress->n_all = 0;
        progress->is_shown = isatty(STDERR_FILENO);
        for (size_t i = 0; i < n; i++) {
                if (ranges[i].to > ranges[i].from)
                        progress->n_all += (uint64_t)(ranges[i].to - ranges[i].from);
        }
        if (progress->is_shown)
                show(progress);
}

void
audit_progress_step(struct audit_progress *progress)
{
        progress->n++;
        if (progress->is_shown && progress->n % RECORDS_A_LOOK == 0 &&
            clock_monotonic_ms() - progress->shown_ms >= SHOW_EVERY_MS)
                show(progress);
}

void
audit_progress_end(struct audit_progress *progress)
{
        if (progress->is_shown)
                fprintf(stderr, "\r\033[K");
}
