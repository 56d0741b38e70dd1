#ifndef HTTP_CONNECTION_STATS_H
#define HTTP_CONNECTION_STATS_H

#include <stdatomic.h>
#include <stdint.h>

/* Why a connection ended. */
enum http_end {
        HTTP_END_CLOSED,            /* by the client, or as it or an answer had announced */
        HTTP_END_IDLE,              /* no request came within idle_timeout */
        HTTP_END_SLOW,              /* a proxy's header, or the taking of an answer, was late */
        HTTP_END_HANDSHAKE_FAILED,  /* of TLS; or the client went away in it */
        HTTP_END_HANDSHAKE_TIMEOUT, /* handshake_timeout */
        HTTP_END_REFUSED,           /* what came on it was answered with an error that ends it */
        HTTP_END_MADE_ROOM,         /* it had waited longest when there were too many, or no descriptors */
        HTTP_END_FULL,              /* there were too many, and none could make room for it */
        HTTP_END_PER_ADDRESS,       /* its address had max_connections_per_address */
        HTTP_END_NO_PROXY,          /* proxy_protocol = required, and its peer is not a trusted proxy */
        HTTP_END_NO_DESCRIPTORS,    /* it could not be accepted, and was turned away */
        HTTP_N_ENDS
};

/* Connections as counted by the servers that share it, in whatever threads. Begin with zeros. */
struct connection_stats {
        atomic_uint_fast64_t accepted;
        atomic_uint_fast64_t ended[HTTP_N_ENDS]; /* what was accepted and has not ended is open */
};

/* The name of an end in the metrics: idle, handshake_failed. */
const char *http_end_name(enum http_end end);

/* A connection was accepted; has ended. stats may be NULL: nobody counts. */
void connection_stats_accepted(struct connection_stats *stats);
void connection_stats_ended(struct connection_stats *stats, enum http_end end);

/* How many are open. */
uint64_t connection_stats_open(const struct connection_stats *stats);

#endif
