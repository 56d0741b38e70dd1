#ifndef KAFKA_EMBEDDED_H
#define KAFKA_EMBEDDED_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * A broker inside the process, librdkafka's mock cluster, for experiments (`bootstrap.servers = embedded`).
 * It loses all data at exit, keeps about 5 MB per partition, and exposes aborted records: no delivery
 * guarantee holds.
 */
struct embedded;

/* Start it on a free port of 127.0.0.1 and create the configured topics. Returns NULL with the reason. */
struct embedded *embedded_new(const struct config *config, struct error *error) MUST_CHECK;

/* Create the configured topics that are missing. Returns 0, or -1 with the reason. */
int embedded_make_topics(struct embedded *embedded, const struct config *config,
                         struct error *error) MUST_CHECK;

void embedded_free(struct embedded *embedded);

/* Return its address, for bootstrap.servers. */
const char *embedded_bootstrap(const struct embedded *embedded);

#endif
