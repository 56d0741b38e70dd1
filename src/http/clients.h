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

#endif
