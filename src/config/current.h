#ifndef CONFIG_CURRENT_H
#define CONFIG_CURRENT_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * The configuration while it may be read again: the one that the process was started with, which holds for all that takes
 * a restart to change, and the newest, which holds for sources, their secrets, and the certificate. Any thread may use it.
 */
struct current;

/* config is held from now on. */
struct current *current_new(const struct config *config);

/* Nobody may use it any more. NULL is harmless. */
void current_free(struct current *current);

/* The one that the process was started with; as long as current is there. */
const struct config *current_first(const struct current *current);

/* The newest, held for the caller, who releases it with config_free(). */
const struct config *current_hold(struct current *current);

/* Whether a configuration that the caller holds is the newest. */
int current_is(struct current *current, const struct config *config);

/* From now on another is the newest; it is held. */
void current_set(struct current *current, const struct config *config);

#endif
