#ifndef CONFIG_FINISH_H
#define CONFIG_FINISH_H

#include "config/config.h"
#include "config/ini.h"
#include "config/problems.h"

/**
 * finish_config(config, ini, problems):
 * Fill in the defaults that depend on other options, and check what options only say together: what is required, what
 * must not be the same, what must fit.
 */
void finish_config(struct config *config, const struct ini *ini, struct problems *problems);

#endif
