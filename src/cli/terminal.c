#include "cli/terminal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SHOW_EVERY_MS 200
#define STEPS_PER_CLOCK_READ 256
#define ERASE_LINE "\r\033[K"

static volatile sig_atomic_t is_interrupted;

static void
on_signal(int signal_number)
{
        (void)signal_number;
        is_interrupted = 1;
}

void
terminal_catch_interrupts(void)
{
        (void)signal(SIGINT, on_signal);
        (void)signal(SIGTERM, on_signal);
}

int
terminal_is_interrupted(void)
{
        return is_interrupted;
}

static void
show(struct terminal_progress *progress)
{
        progress->shown_ms = clock_monotonic_ms();
        fprintf(stderr, ERASE_LINE "%s: %" PRIu64 " of about %" PRIu64, progress->label, progress->n,
                progress->n_all);
        (void)fflush(stderr);
}

void
terminal_progress_begin(struct terminal_progress *progress, const char *label, uint64_t n_all)
{
        (void)snprintf(progress->label, sizeof(progress->label), "%s", label);
        progress->n = 0;
        progress->n_all = n_all;
        progress->is_shown = isatty(STDERR_FILENO);
        if (progress->is_shown)
                show(progress);
}

void
terminal_progress_step(struct terminal_progress *progress)
{
        progress->n++;
        if (progress->is_shown && progress->n % STEPS_PER_CLOCK_READ == 0 &&
            clock_monotonic_ms() - progress->shown_ms >= SHOW_EVERY_MS)
                show(progress);
}

void
terminal_progress_end(struct terminal_progress *progress)
{
        if (progress->is_shown)
                fprintf(stderr, ERASE_LINE);
        progress->is_shown = 0;
}
