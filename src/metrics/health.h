#ifndef METRICS_HEALTH_H
#define METRICS_HEALTH_H

#include <stddef.h>

#define HEALTH_REASON_SIZE 256
#define HEALTH_MAX_PARTS 4

/* A part of the process that can be ready or not: a role. */
struct health_part {
        const char *name;
        /* Returns whether the part works; else writes why not. Called from the main thread. */
        int (*is_ready)(void *arg, char reason[HEALTH_REASON_SIZE]);
        void *arg;
};

/* The parts whose readiness makes up that of the process. A plain value, for the main thread. */
struct health {
        struct health_part parts[HEALTH_MAX_PARTS];
        size_t n_parts;
        int was_ready;
        /* Whether every thread goes on; else writes which one does not. NULL: not known. Called from the main thread. */
        int (*is_alive)(void *arg, char reason[HEALTH_REASON_SIZE]);
        void *alive_arg;
};

void health_add(struct health *health, const char *name,
                int (*is_ready)(void *arg, char reason[HEALTH_REASON_SIZE]), void *arg);

/* Ask whether every thread goes on; else writes which one does not. */
int health_is_alive(const struct health *health, char reason[HEALTH_REASON_SIZE]);

/**
 * health_check(health, text, size):
 * Ask every part. Writes a line for each, `receiver: ready` or `router: why not`, and returns whether all are ready.
 */
int health_check(const struct health *health, char *text, size_t size);

/* Make what health_check() wrote one line, with semicolons. Returns text. */
char *health_one_line(char *text);
/* Ask, and say in the log how each part is. */
void health_log(const struct health *health);

/* Ask, and say in the log when readiness has changed since the last call. */
void health_log_changes(struct health *health);

#endif
