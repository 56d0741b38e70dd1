#ifndef KAFKA_EMBEDDED_H
#define KAFKA_EMBEDDED_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * A broker inside the process, librdkafka's mock cluster, for trying things out (`bootstrap.servers = embedded`). It
 * forgets everything at exit, keeps about 5 MB a partition, and shows aborted records: no promise holds on it.
 */
struct embedded;

/* Start it on a free port of 127.0.0.1 and make the configured topics. Returns NULL with the reason. */
struct embedded *embedded_new(const struct config *config, struct error *error) MUST_CHECK;

/* Make the topics that a configuration names, as far as they are not there. Returns 0 or -1 with the reason. */
int embedded_make_topics(struct embedded *embedded, const struct config *config,
                         struct error *error) MUST_CHECK;

void embedded_free(struct embedded *embedded);

/* Its address, for bootstrap.servers. */
const char *embedded_bootstrap(const struct embedded *embedded);

#endif
