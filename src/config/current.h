#ifndef CONFIG_CURRENT_H
#define CONFIG_CURRENT_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * The configuration of a process that can reload it: the first one, from the start of the process, whose
 * values count for options that need a restart, and the newest one, for all others, such as sources, their
 * secrets, and the certificate. Any thread may use it.
 */
struct current;

/* Start with a configuration, and hold it. */
struct current *current_new(const struct config *config);

/* Release both configurations. No other thread may still use current. NULL is harmless. */
void current_free(struct current *current);

/* Return the first configuration; it is valid as long as current is. */
const struct config *current_first(const struct current *current);

/* Return the newest configuration, held for the caller, who releases it with config_free(). */
const struct config *current_hold(struct current *current);

/* Return whether a configuration that the caller holds is the newest. */
int current_is(struct current *current, const struct config *config);

/* Make a configuration the newest, and hold it. */
void current_set(struct current *current, const struct config *config);

#endif
