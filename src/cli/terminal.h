#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdint.h>

/* The person at the terminal: colours, interrupts and a progress line. */

enum terminal_colour {
        TERMINAL_DEFAULT,
        TERMINAL_FAINT,
        TERMINAL_BOLD,
        TERMINAL_BLUE,
        TERMINAL_GREEN,
        TERMINAL_RED,
};

/**
 * terminal_colour(colour):
 * Return the escape sequence that switches stdout to a colour. It is empty when stdout is not a terminal,
 * TERM is unset or "dumb", or the environment variable NO_COLOR is set and not empty (no-color.org).
 */
const char *terminal_colour(enum terminal_colour colour);

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
