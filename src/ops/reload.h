#ifndef OPS_RELOAD_H
#define OPS_RELOAD_H

#include "base/compiler.h"
#include "config/current.h"
#include "kafka/probe.h"

/**
 * reload_read(current, probe):
 * Read the configuration's file again, and say in the log what in it takes a restart to change. A router's topics that were
 * not named before are held against what is asked of them; that may wait for Kafka for some seconds. Returns the
 * configuration, held for the caller, when it may become the newest; NULL when it may not, after saying why.
 */
const struct config *reload_read(struct current *current, struct probe *probe) MUST_CHECK;

/* Say in the log that a configuration which was read again does not become the newest. */
void reload_log_refused(const struct config *first, const char *reason);

/* Say in the log when the certificate, if there is one, has expired or soon will. */
void reload_log_certificate(const struct config *config);

#endif
