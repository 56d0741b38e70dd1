#ifndef CLI_RELEASE_WRITER_H
#define CLI_RELEASE_WRITER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "model/release.h"

/*
 * Appends releases: first a delivery to `deliveries` and, when Kafka has acknowledged it, a marker to
 * `quarantine`, in the partition of the record. The marker has the key of the record, no value, and in
 * gatepost-released the record's ID. If the command dies between the two, the record counts as unreleased;
 * the router drops what is then released again, because it has the same identity.
 */
struct release_writer;

/* Called once for each release; failure is NULL when Kafka has acknowledged the delivery and the marker. */
typedef void release_written(const char *failure, int is_denied, void *arg);

/* Returns NULL with the reason. */
struct release_writer *release_writer_new(const struct config *config, const char *bootstrap,
                                          release_written *on_written, struct error *error) MUST_CHECK;

/* Free the writer, after release_writer_finish(). */
void release_writer_free(struct release_writer *writer);

/**
 * release_writer_add(writer, message, id, arg, error):
 * Release the record with this ID, whose body and headers are those of a message; on_written is called with
 * arg. Blocks while too many are on their way. Returns 0, or -1 when OpenSSL fails.
 */
int release_writer_add(struct release_writer *writer, const rd_kafka_message_t *message,
                       const struct release_id *id, void *arg, struct error *error) MUST_CHECK;

/* Wait until on_written was called for all releases. */
void release_writer_finish(struct release_writer *writer);

#endif
