#ifndef OPS_RELOAD_H
#define OPS_RELOAD_H

#include "base/compiler.h"
#include "config/current.h"

/**
 * reload_read(current):
 * Read the configuration's file again, and say in the log what in it takes a restart to change. Returns it, held for the
 * caller, when it may become the newest; NULL when it may not, after saying why, with all errors on stderr.
 */
const struct config *reload_read(struct current *current) MUST_CHECK;

/* Say in the log when the certificate, if there is one, has expired or soon will. */
void reload_log_certificate(const struct config *config);

#endif
