#ifndef HTTP_PROXY_HEADER_H
#define HTTP_PROXY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * The header that a proxy puts before a connection's own bytes to say who the client is: the PROXY protocol, version 2,
 * section 2.2 (the specification stands with HAProxy). 16 bytes, of which the last two tell the length of the rest:
 * addresses, then TLVs, which are not looked at.
 */
#define PROXY_HEADER_LEN 16
#define PROXY_HEADER_FIRST '\r'    /* no TLS and no request begins with it */
#define PROXY_HEADER_REST_MAX 2048 /* addresses have 36 bytes at most; the rest is for TLVs */

/**
 * proxy_header_rest(head, len):
 * Judge the first 16 bytes; *len is how many follow. Returns 0, or -1 when it is no header of version 2 or too long.
 */
int proxy_header_rest(const uint8_t head[PROXY_HEADER_LEN], size_t *len) MUST_CHECK;

/**
 * proxy_header_client(head, rest, len, client):
 * Who the client is. Returns 1; 0 when the header names none (LOCAL, or no TCP over IP), for which the connection's peer
 * stands; or -1 when it is malformed.
 */
int proxy_header_client(const uint8_t head[PROXY_HEADER_LEN], const uint8_t *rest, size_t len,
                        struct address *client) MUST_CHECK;

#endif
