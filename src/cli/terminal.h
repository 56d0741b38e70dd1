#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdint.h>

/* The person at the terminal, who may interrupt, and who waits. */

/* Catch SIGINT and SIGTERM, which then no longer end the process. */
void terminal_catch_interrupts(void);

/* Return whether SIGINT or SIGTERM was caught. */
int terminal_is_interrupted(void);

/* Say on stderr, if that is a terminal, that a job of about n steps begins; such as `reading deliveries`. */
void terminal_announce(const char *job, uint64_t n);

#endif
