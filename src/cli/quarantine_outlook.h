#ifndef CLI_QUARANTINE_OUTLOOK_H
#define CLI_QUARANTINE_OUTLOOK_H

#include <librdkafka/rdkafka.h>

#include "cli/quarantine_outcome.h"
#include "model/release.h"
#include "model/reverification.h"

/* Tells what the router will make of a release, by the same code and the configuration at hand. */
struct outlook;

/* NULL when memory fails. */
struct outlook *outlook_new(const struct config *config) MUST_CHECK;
void outlook_free(struct outlook *outlook);

/* What a release has beside what it keeps of its record. */
struct release_headers {
        char released[RELEASE_ID_SIZE];
        char signature[RELEASE_SIGNATURE_SIZE]; /* empty: its source is not configured */
};

/* The headers of a release that is made now. Returns 0, or -1 when memory or OpenSSL fails. */
int outlook_sign(const struct config *config, const rd_kafka_message_t *message, const struct release_id *id,
                 struct release_headers *headers) MUST_CHECK;

/* Fill in what comes of a record of quarantine once it is released. Returns 0, or -1 when memory or OpenSSL fails. */
int outlook_find(struct outlook *outlook, const rd_kafka_message_t *message,
                 const struct release_headers *headers, struct releasing *releasing) MUST_CHECK;

#endif
