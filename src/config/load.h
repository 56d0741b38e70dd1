#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "base/compiler.h"
#include "config/config.h"
#include "config/ini.h"

/**
 * load_file(file, ini, tell):
 * As config_load_telling(), and *ini has what stands in the file, to be released with ini_clear(), also after a failure.
 */
struct config *load_file(const char *file, struct ini *ini, problems_teller *tell) MUST_CHECK;

#endif
