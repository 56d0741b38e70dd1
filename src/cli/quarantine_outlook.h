#ifndef CLI_QUARANTINE_OUTLOOK_H
#define CLI_QUARANTINE_OUTLOOK_H

#include <librdkafka/rdkafka.h>

#include "cli/quarantine_outcome.h"

/* Tells what the router will make of a release, by the same code and the configuration at hand. */
struct outlook;

/* NULL when memory fails. */
struct outlook *outlook_new(const struct config *config) MUST_CHECK;
void outlook_free(struct outlook *outlook);

/* Fill in what comes of a record of quarantine once it is released. Returns 0, or -1 when memory fails. */
int outlook_find(struct outlook *outlook, const rd_kafka_message_t *message,
                 struct releasing *releasing) MUST_CHECK;

#endif
