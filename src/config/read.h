#ifndef CONFIG_READ_H
#define CONFIG_READ_H

#include "base/compiler.h"
#include "config/ini.h"
#include "config/problems.h"

/**
 * read_file(file, ini, problems):
 * Read and parse a configuration file of at most 1 MiB. Returns 0; -1 with one problem when it cannot be read, is no
 * regular file, or says nothing at all.
 */
int read_file(const char *file, struct ini *ini, struct problems *problems) MUST_CHECK;

#endif
