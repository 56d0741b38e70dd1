#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdint.h>

/* The person at the terminal: interrupts and a progress line. */

/* Catch SIGINT and SIGTERM, which then no longer end the process. */
void terminal_catch_interrupts(void);

/* Return whether SIGINT or SIGTERM was caught. */
int terminal_is_interrupted(void);

#define TERMINAL_LABEL_SIZE 80

/* A line on stderr that shows progress; nothing is written when stderr is not a terminal. */
struct terminal_progress {
        char label[TERMINAL_LABEL_SIZE];
        uint64_t n;
        uint64_t n_all;
        int64_t shown_ms;
        int is_shown;
};

/* Show the line for a job of about n_all steps; the label is such as `reading deliveries`. */
void terminal_progress_begin(struct terminal_progress *progress, const char *label, uint64_t n_all);

/* Count a step; update the line five times a second at most. */
void terminal_progress_step(struct terminal_progress *progress);

/* Erase the line. */
void terminal_progress_end(struct terminal_progress *progress);

#endif
