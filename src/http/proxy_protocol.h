#ifndef HTTP_PROXY_PROTOCOL_H
#define HTTP_PROXY_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * The header by which a proxy says who the client is, before a connection's own bytes: the PROXY protocol, version 2, section
 * 2.2 (the specification is part of HAProxy). 16 bytes, of which the last two are the length of the rest: addresses, then
 * TLVs, which are ignored.
 */
#define PROXY_HEADER_LEN 16
#define PROXY_REST_MAX 2048 /* addresses take 36 bytes at most; the rest is for TLVs */

/* A header as far as it has come. Begin with zeros. */
struct proxy_header {
        size_t len;
        uint8_t data[PROXY_HEADER_LEN + PROXY_REST_MAX];
};

/**
 * proxy_header_read(header, fd):
 * Read what has come of a header from a non-blocking socket, and not a byte beyond it, since TLS or a request follows. Returns
 * 1 when it is complete, 0 when more must come, or -1 when it is malformed or the connection has ended.
 */
int proxy_header_read(struct proxy_header *header, int fd) MUST_CHECK;

/**
 * proxy_header_client(header, client):
 * The client that a complete header names. Returns 1; 0 when it names none (LOCAL, or not TCP over IP), so that the
 * connection's own peer is the client; or -1 when it is malformed.
 */
int proxy_header_client(const struct proxy_header *header, struct address *client) MUST_CHECK;

#endif
