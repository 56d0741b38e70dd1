#ifndef CLI_RELEASE_WRITER_H
#define CLI_RELEASE_WRITER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "model/release.h"

/*
 * Appends releases. A release is a delivery in `deliveries` and a marker in `quarantine`, both in one
 * transaction: the marker has the key of the record, no value, and in gatepost-released the record's ID. The
 * transactional.id is `<prefix>.release-<random>`, so that commands that run at once do not fence each other.
 */
struct release_writer;

/* Returns NULL with the reason. */
struct release_writer *release_writer_new(const struct config *config, const char *bootstrap,
                                          struct error *error) MUST_CHECK;
void release_writer_free(struct release_writer *writer);

/* What a release has beside the bytes of the record. */
struct release_headers {
        struct release_id id;
        const char *signature; /* empty: its source is not configured */
};

/**
 * release_writer_add(writer, message, headers, error):
 * Add a release to the open transaction; begin one if there is none. The body is that of the message. Returns
 * 0, or -1 with the reason.
 */
int release_writer_add(struct release_writer *writer, const rd_kafka_message_t *message,
                       const struct release_headers *headers, struct error *error) MUST_CHECK;

/* Return whether the transaction has grown so large that it should be committed. */
int release_writer_is_full(const struct release_writer *writer);

/**
 * release_writer_commit(writer, error):
 * Commit the open transaction, if there is one. Returns 0 when all in-sync replicas have its releases, or -1
 * with the reason: none of them was made, or the outcome is unknown, and the markers tell it.
 */
int release_writer_commit(struct release_writer *writer, struct error *error) MUST_CHECK;

/* Return whether the account lacks a permission. */
int release_writer_is_denied(const struct release_writer *writer);

#endif
