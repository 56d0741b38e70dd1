#ifndef METRICS_HEALTH_H
#define METRICS_HEALTH_H

#include <stddef.h>

#define HEALTH_REASON_SIZE 1024
#define HEALTH_MAX_PARTS 4

/* A part of the process that is ready or not: a role. */
struct health_part {
        const char *name;
        /* Return whether the part is ready; else write the reason. Called in the main thread. */
        int (*is_ready)(void *arg, char reason[HEALTH_REASON_SIZE]);
        void *arg;
};

/* Readiness and liveness of the process. A plain value, for the main thread. */
struct health {
        struct health_part parts[HEALTH_MAX_PARTS];
        size_t n_parts;
        int was_ready;
        /* Return whether every thread makes progress; else write which one does not. NULL: not known. */
        int (*is_alive)(void *arg, char reason[HEALTH_REASON_SIZE]);
        void *alive_arg;
};

void health_add(struct health *health, const char *name,
                int (*is_ready)(void *arg, char reason[HEALTH_REASON_SIZE]), void *arg);

/* Return whether every thread makes progress; else write which one does not. */
int health_is_alive(const struct health *health, char reason[HEALTH_REASON_SIZE]);

/**
 * health_check(health, name, separator, text, size):
 * Write the state of each part, or of the one with this name, with the separator between them: `receiver:
 * ready`, `router: REASON`. Return whether all these are ready, or -1 if the process does not have the part.
 */
int health_check(const struct health *health, const char *name, const char *separator, char *text,
                 size_t size);

/* Log the readiness of the process when it has changed since the last call. */
void health_log_changes(struct health *health);

#endif
