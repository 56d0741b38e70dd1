#ifndef BASE_DIAL_H
#define BASE_DIAL_H

#include <netdb.h>
#include <stddef.h>

#include <openssl/ssl.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * A connection that is made step by step, each with a time limit, so that it is known which step fails.
 * librdkafka and libcurl report only one error for all of them. For the command line: it blocks.
 */
struct dial {
        int fd;       /* -1: not connected */
        SSL *session; /* NULL: no TLS */
};

/* Why a step failed, as far as it matters for the advice. */
enum dial_failure {
        DIAL_FAILED,
        DIAL_REFUSED, /* or the socket does not exist */
        DIAL_DENIED,  /* this user may not connect */
        DIAL_TIMED_OUT,
        DIAL_CLOSED, /* by the other side */
};

/**
 * dial_resolve(host, port, timeout_ms, found, error):
 * Resolve a name. Returns 0, and the caller calls freeaddrinfo(*found), or -1 with the reason. A thread that
 * name servers do not answer is left behind.
 */
int dial_resolve(const char *host, const char *port, int timeout_ms, struct addrinfo **found,
                 struct error *error) MUST_CHECK;

/* Free the addresses of a list that are not of the family; AF_UNSPEC: none. */
void dial_keep_family(struct addrinfo **list, int family);

#define DIAL_TEXT_SIZE 80

/* Write a numeric address with its port, or the path of a socket. Return text. */
const char *dial_format(const struct addrinfo *address, char text[DIAL_TEXT_SIZE]);

/**
 * dial_connect(dial, addresses, timeout_ms, failure, error):
 * Connect to the first address of a list that accepts, trying each for timeout_ms. Returns 0, or -1 with the
 * reason; for the last address if there are several.
 */
int dial_connect(struct dial *dial, const struct addrinfo *addresses, int timeout_ms,
                 enum dial_failure *failure, struct error *error) MUST_CHECK;

/**
 * dial_secure(dial, context, name, timeout_ms, failure, error):
 * Make the TLS handshake as a client. name is for SNI; NULL: none. The context decides about verification.
 * Returns 0, or -1 with the reason.
 */
int dial_secure(struct dial *dial, SSL_CTX *context, const char *name, int timeout_ms,
                enum dial_failure *failure, struct error *error) MUST_CHECK;

/* Send or receive exactly len bytes within the time. Return 0, or -1 with the reason. */
int dial_send(struct dial *dial, const void *bytes, size_t len, int timeout_ms, enum dial_failure *failure,
              struct error *error) MUST_CHECK;
int dial_receive(struct dial *dial, void *bytes, size_t len, int timeout_ms, enum dial_failure *failure,
                 struct error *error) MUST_CHECK;

/* Close the connection, if it is open. */
void dial_close(struct dial *dial);

#endif
