#ifndef HTTP_PROXY_PROTOCOL_H
#define HTTP_PROXY_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * The header of the PROXY protocol version 2 (HAProxy's proxy-protocol.txt, section 2.2), with which a proxy
 * names the client at the beginning of a connection: 16 bytes, the last two of them the length of the rest.
 * The rest is the addresses, and TLVs, which are ignored.
 */
#define PROXY_HEADER_LEN 16
#define PROXY_REST_MAX 2048 /* at most 36 bytes of addresses, and TLVs */

/* The reason to refuse a header where none is expected. */
#define PROXY_UNEXPECTED "a PROXY protocol header, but proxy_protocol is off"
#define PROXY_SECOND "a second PROXY protocol header"

/* The first bytes of a connection that proxy_header_begins() needs: as many as the header of a TLS record. */
#define PROXY_BEGIN_LEN 5

/* Return whether a connection that begins with these bytes begins with a header of version 1 or 2. */
int proxy_header_begins(const char first[PROXY_BEGIN_LEN]) MUST_CHECK;

/* Return whether a line begins as a header of version 1 does (section 2.1), with or without addresses. */
int proxy_header_is_line(const char *line, size_t len) MUST_CHECK;

/* The bytes of a header read so far. Zero-initialise. */
struct proxy_header {
        size_t len;
        uint8_t data[PROXY_HEADER_LEN + PROXY_REST_MAX];
};

/**
 * proxy_header_read(header, fd):
 * Read more of a header from a non-blocking socket, and no byte beyond it: TLS or a request follows. Returns
 * 1 when it is complete, 0 when more is needed, or -1 when it is malformed or the connection has ended.
 */
int proxy_header_read(struct proxy_header *header, int fd) MUST_CHECK;

/**
 * proxy_header_client(header, client):
 * Get the client that a complete header names. Returns 1; 0 when it names none (LOCAL, or not TCP over IP):
 * the client is then the peer; or -1 when it is malformed.
 */
int proxy_header_client(const struct proxy_header *header, struct address *client) MUST_CHECK;

/* Name what came instead of a complete, valid header: a constant. */
const char *proxy_header_fault(const struct proxy_header *header) MUST_CHECK;

#endif
