#ifndef SPOOL_CONFIG_CHECKS_H
#define SPOOL_CONFIG_CHECKS_H

#include "base/compiler.h"
#include "config/config.h"

/**
 * config_checks_load(file, findings):
 * Read and check a configuration as config_load_reporting() does, then check on this machine what it names:
 * the certificate, the Kafka clients, the spool and the state directory. Addresses are left to
 * http/listen_check.h. Return it, or NULL if there is an error in the file. No room below this one sees all
 * of these.
 */
struct config *config_checks_load(const char *file, struct findings *findings) MUST_CHECK;

#endif
