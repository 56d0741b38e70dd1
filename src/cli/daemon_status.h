#ifndef CLI_DAEMON_STATUS_H
#define CLI_DAEMON_STATUS_H

#include "base/compiler.h"
#include "base/json_tree.h"

/**
 * daemon_status_read(file, status):
 * Ask the daemon on this machine for its /status. The configuration file says where: of all options, only
 * `listen` in [admin] is read, so an error elsewhere in the file does not matter. Returns 0 and the document,
 * to be released with json_tree_free(); or an exit status after printing why there is none, and the remedy.
 */
int daemon_status_read(const char *file, struct json_value **status) MUST_CHECK;

#endif
