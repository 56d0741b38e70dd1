#ifndef HTTP_CLIENTS_H
#define HTTP_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * Counts open connections and refusals a second for each client address; for any thread. An IPv6 /64 counts
 * as one client. Memory is bounded: of the addresses without a connection, the CLIENTS_IDLE_MAX refused last
 * are remembered.
 */
#define CLIENTS_IDLE_MAX 65536

struct clients;

/**
 * clients_new(max_connections, max_refusals):
 * Set the limits of each address: open connections, refusals a second; 0: no limit. Returns NULL when memory
 * fails.
 */
struct clients *clients_new(uint64_t max_connections, uint64_t max_refusals) MUST_CHECK;
void clients_free(struct clients *clients);

/* Change the limits. Connections are counted even without a limit, so those already open count. */
void clients_set_limits(struct clients *clients, uint64_t max_connections, uint64_t max_refusals);

/**
 * clients_connect(clients, address):
 * Count a connection; on success, clients_disconnect() must follow. Returns 0, or -1 when the address has
 * reached its limit or memory fails.
 */
int clients_connect(struct clients *clients, const struct address *address) MUST_CHECK;
void clients_disconnect(struct clients *clients, const struct address *address);

/* Count a refused request, at a monotonic time. */
void clients_count_refusal(struct clients *clients, const struct address *address, int64_t now_ms);

/* Returns 1 when the address has reached its limit of refusals in this second. */
int clients_is_throttled(struct clients *clients, const struct address *address, int64_t now_ms);

/* Proxies that are trusted to name the client. */
struct http_trust {
        const struct network *networks;
        size_t n;
        int unix_sockets; /* trust every peer on a Unix-domain socket */
};

/* Returns 1 when the peer is a trusted proxy. is_unix: it is connected through a Unix-domain socket. */
int forwarded_trusts(const struct http_trust *trust, const struct address *peer, int is_unix);

/**
 * forwarded_client(trust, peer, list, len):
 * Find the client in the values of X-Forwarded-For, joined by commas, of a trusted proxy's request: from the
 * right, where the nearest proxy appends, the first address that is not a trusted proxy. An entry that is not
 * an address ends the search; the client is then the entry to its right.
 */
struct address forwarded_client(const struct http_trust *trust, const struct address *peer, const char *list,
                                size_t len);

#endif
