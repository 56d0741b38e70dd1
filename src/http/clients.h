#ifndef HTTP_CLIENTS_H
#define HTTP_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * What each client address has open, and how often it was refused within the second; for any thread. An IPv6 address
 * counts together with the other addresses of its /64, which are one customer's. Memory is bounded: of addresses without
 * a connection, those refused last are remembered, CLIENTS_IDLE_MAX of them.
 */
#define CLIENTS_IDLE_MAX 65536

struct clients;

/**
 * clients_new(max_connections, max_refusals):
 * Limits for each address: connections at a time, refusals a second; 0: no limit. Returns NULL when memory fails.
 */
struct clients *clients_new(uint64_t max_connections, uint64_t max_refusals) MUST_CHECK;
void clients_free(struct clients *clients);

/* Other limits from now on. Connections are counted whether there is a limit or not, so those that are open count. */
void clients_set_limits(struct clients *clients, uint64_t max_connections, uint64_t max_refusals);

/**
 * clients_connect(clients, address):
 * A connection is opened; clients_disconnect() follows when it succeeds. Returns 0, or -1 when the address has as many
 * as it may have, or memory fails.
 */
int clients_connect(struct clients *clients, const struct address *address) MUST_CHECK;
void clients_disconnect(struct clients *clients, const struct address *address);

/* A request was refused, at a monotonic time. */
void clients_count_refusal(struct clients *clients, const struct address *address, int64_t now_ms);

/* Whether the address has been refused as often within this second as it may be. */
int clients_is_throttled(struct clients *clients, const struct address *address, int64_t now_ms);

/* Proxies that are believed when they say who the client is. */
struct http_trust {
        const struct network *networks;
        size_t n;
        int unix_sockets; /* whoever connects through a Unix-domain socket */
};

/* Whether a connection's peer is a trusted proxy; is_unix: it came through a Unix-domain socket. */
int forwarded_trusts(const struct http_trust *trust, const struct address *peer, int is_unix);

/**
 * forwarded_client(trust, peer, list, len):
 * The client by the values of X-Forwarded-For, joined by commas, of a request that a trusted proxy sent: from the right, which
 * the nearest proxy wrote, the first address that is not a trusted proxy's. An entry that is no address ends the search; the
 * one before it is the client.
 */
struct address forwarded_client(const struct http_trust *trust, const struct address *peer, const char *list,
                                size_t len);

#endif
