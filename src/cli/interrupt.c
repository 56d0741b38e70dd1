#include "cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t came;

static void
on_signal(int signal_number)
{
        (void)signal_number;
        came = 1;
}

void
interrupt_watch(void)
{
        (void)signal(SIGINT, on_signal);
        (void)signal(SIGTERM, on_signal);
}

int
interrupt_came(void)
{
        return came;
}
