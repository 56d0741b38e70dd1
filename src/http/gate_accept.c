#include "http/gate_accept.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log_flood.h"
#include "http/connections.h"
#include "http/gate.h"

static void
log_too_many(const struct address *client)
{
        static struct log_flood flood;
        char text[ADDRESS_TEXT_SIZE];

        log_flood(&flood, LOG_LEVEL_NOTICE,
                  "connections beyond max_connections_per_address were closed client=%s",
                  address_format(client, text));
}

/* Returns 0, or -1 beyond max_connections_per_address. A trusted proxy itself has no limit. */
static int
count_client(struct connection *connection)
{
        const struct http_limits *limits = &connection->all->limits;

        if (limits->clients == NULL ||
            forwarded_trusts(&limits->trust, &connection->client, connection->is_unix))
                return 0;
        if (clients_connect(limits->clients, &connection->client) != 0) {
                log_too_many(&connection->client);
                return -1;
        }
        connection->is_counted = 1;
        return 0;
}

/* Nagle's algorithm would delay all but the first TLS record of a large answer by 40 ms. */
static void
send_at_once(evutil_socket_t fd)
{
        const int on = 1;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* fails for a Unix-domain socket */
}

/* Begin to read: the TLS handshake or requests. Returns 0, or -1 when memory fails. */
static int
open_stream(struct connection *connection)
{
        struct tls *tls = connection->all->tls;

        if (tls != NULL) {
                if (stream_use_tls(&connection->stream, tls_session(tls)) != 0)
                        return -1;
                if (!connection->all->limits.requires_proxy)
                        tls_watch_for_proxy(connection->stream.session);
                send_at_once(connection->stream.fd);
        }
        gate_enter(connection, tls != NULL ? GATE_HANDSHAKE : GATE_IDLE);
        return stream_watch(&connection->stream, 1);
}

void
gate_shake_hands(struct connection *connection)
{
        int result = stream_shake_hands(&connection->stream);

        if (result == STREAM_BROKEN)
                gate_end(connection, HTTP_END_CLOSED);
        else if (result == 1)
                gate_enter(connection, GATE_IDLE);
}

/* The client's address is known: check the limits and begin. */
static void
begin(struct connection *connection)
{
        if (count_client(connection) != 0) {
                gate_end(connection, HTTP_END_PER_ADDRESS);
                return;
        }
        /* After count_client(): a client beyond its own limit must not close the connections of others. */
        if (connections_admit(connection->all, connection) != 0) {
                gate_end(connection, HTTP_END_FULL);
                return;
        }
        if (open_stream(connection) != 0)
                gate_end(connection, HTTP_END_FULL);
}

void
gate_read_proxy(struct connection *connection)
{
        int result = proxy_header_read(connection->proxy_header, connection->stream.fd);
        int is_silent = connection->proxy_header->len == 0; /* such as a load balancer that checks the port */

        if (result == 0)
                return;
        if (result > 0)
                result = proxy_header_client(connection->proxy_header, &connection->client);
        if (result > 0)
                connection->is_unix = 0;
        if (result < 0) {
                gate_end(connection, is_silent ? HTTP_END_CLOSED : HTTP_END_PROXY_HEADER);
                return;
        }
        free(connection->proxy_header);
        connection->proxy_header = NULL;
        begin(connection);
}

/* The listener requires the PROXY protocol, which only trusted proxies may speak. */
static void
await_proxy(struct connection *connection)
{
        const struct http_limits *limits = &connection->all->limits;

        if (!forwarded_trusts(&limits->trust, &connection->client, connection->is_unix)) {
                gate_end(connection, HTTP_END_NO_PROXY);
                return;
        }
        if (connections_admit(connection->all, connection) != 0) {
                gate_end(connection, HTTP_END_FULL);
                return;
        }
        gate_enter(connection, GATE_PROXY);
        connection->proxy_header = calloc(1, sizeof(*connection->proxy_header));
        if (connection->proxy_header == NULL || stream_watch(&connection->stream, 1) != 0)
                gate_end(connection, HTTP_END_FULL);
}

/* Returns 0, or -1 when the client has already reset the connection. */
static int
find_peer(struct connection *connection)
{
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(from);

        if (getpeername(connection->stream.fd, (struct sockaddr *)&from, &len) != 0)
                return -1;
        connection->is_unix = from.ss_family == AF_UNIX;
        address_from_socket((const struct sockaddr *)&from, &connection->client);
        return 0;
}

/*
 * evhttp has set up its side, or failed; if it failed, the letter box still owns the descriptor and closes
 * it.
 */
void
gate_attach(struct connection *connection)
{
        evutil_socket_t fd = bufferevent_getfd(connection->letter_box);

        if (gate_evhttp_is_gone(connection) || fd < 0 || bufferevent_setfd(connection->letter_box, -1) != 0) {
                gate_end(connection, HTTP_END_FULL);
                return;
        }
        stream_open(&connection->stream, connection->all->base, fd, gate_on_ready, connection);
        if (find_peer(connection) != 0)
                gate_end(connection, HTTP_END_CLOSED);
        else if (connection->all->limits.requires_proxy)
                await_proxy(connection);
        else
                begin(connection);
}

void
gate_accept(struct connection *connection)
{
        bufferevent_incref(connection->letter_box);
        connections_count_in(connection);
        gate_enter(connection, GATE_ACCEPTED);
        gate_advance_later(connection); /* evhttp sets the descriptor after this */
}
