#ifndef KAFKA_SCRAM_H
#define KAFKA_SCRAM_H

#include "base/compiler.h"
#include "base/error.h"

/* The client's side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), without channel binding. */
struct scram;

/* Begin a login. The mechanism is one of these two. Both texts must outlive it. */
struct scram *scram_new(const char *mechanism, const char *user, const char *password);
void scram_free(struct scram *scram);

/* Return the client's first message, valid as long as the login. */
const char *scram_first(const struct scram *scram);

/* Return the client's final message for the server's first, or NULL with the reason. */
const char *scram_final(struct scram *scram, const char *server_first, struct error *error) MUST_CHECK;

/* Check that the server's final message proves that it knows the password. Returns 0, or -1. */
int scram_check(const struct scram *scram, const char *server_final, struct error *error) MUST_CHECK;

#endif
