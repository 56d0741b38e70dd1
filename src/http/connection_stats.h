#ifndef HTTP_CONNECTION_STATS_H
#define HTTP_CONNECTION_STATS_H

#include <stdatomic.h>
#include <stdint.h>

/* Why a connection ended. */
enum http_end {
        HTTP_END_CLOSED,            /* by the client, or as announced by Connection: close */
        HTTP_END_IDLE,              /* no request within idle_timeout */
        HTTP_END_SLOW,              /* the PROXY protocol header, or reading the answer, took too long */
        HTTP_END_PROXY_HEADER,      /* the PROXY protocol header is missing, malformed or incomplete */
        HTTP_END_HANDSHAKE_FAILED,  /* TLS handshake failed, or the client closed during it */
        HTTP_END_HANDSHAKE_TIMEOUT, /* handshake_timeout */
        HTTP_END_REFUSED,           /* answered with an error that closes the connection */
        HTTP_END_MADE_ROOM,      /* closed for another connection: max_connections, or out of descriptors */
        HTTP_END_FULL,           /* max_connections, and no other connection could be closed */
        HTTP_END_PER_ADDRESS,    /* max_connections_per_address */
        HTTP_END_NO_PROXY,       /* proxy_protocol = required, and the peer is not a trusted proxy */
        HTTP_END_NO_DESCRIPTORS, /* rejected: out of file descriptors */
        HTTP_N_ENDS
};

/* Counters of connections, shared by servers in any thread. Zero-initialise. */
struct connection_stats {
        atomic_uint_fast64_t accepted;
        atomic_uint_fast64_t ended[HTTP_N_ENDS];
};

/* Return the name of an end in the metrics: idle, handshake_failed. gatepostd(8) explains each. */
const char *http_end_name(enum http_end end);

/* Count an accepted connection; an ended connection. stats may be NULL. */
void connection_stats_accepted(struct connection_stats *stats);
void connection_stats_ended(struct connection_stats *stats, enum http_end end);

/* Return the number of open connections: accepted less ended. */
uint64_t connection_stats_open(const struct connection_stats *stats);

#endif
