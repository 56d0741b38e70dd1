#include "cli/terminal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

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

void
terminal_announce(const char *job, uint64_t n)
{
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "%s: about %" PRIu64 " records\n", job, n);
}
