#include "http/entrance.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/log_flood.h"

void
entrance_accept(struct connection *connection)
{
        struct connections *all = connection->all;

        all->n++;
        http_census_accepted(all->limits.census);
        connection->stage = STAGE_ARRIVING;
        TAILQ_INSERT_TAIL(&all->waiting, connection, entry);
        bufferevent_incref(connection->bev);
        event_active(connection->timer, EV_TIMEOUT, 1); /* attach, once evhttp is done accepting */
}

void
entrance_stop(struct connection *connection)
{
        if (connection->arrival == NULL)
                return;
        arrival_free(connection->arrival);
        connection->arrival = NULL;
        (void)bufferevent_setfd(connection->bev, connection->fd);
}

static void
log_too_many(const struct address *client)
{
        static struct log_flood flood;
        char text[ADDRESS_TEXT_SIZE];

        log_flood(&flood, LOG_LEVEL_NOTICE,
                  "connections beyond max_connections_per_address were closed last_client=%s",
                  address_format(client, text));
}

/*
 * Head and body of an answer are a TLS record each: Nagle's algorithm would keep the second until the client acknowledges
 * the first, for which it takes 40 ms.
 */
static void
send_at_once(evutil_socket_t fd)
{
        const int on = 1;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
                         sizeof(on)); /* a Unix-domain socket has none of this */
}

/* Returns 0, or -1 for one connection too many. A proxy that does not tell its clients has no limit of its own. */
static int
count_client(struct connection *connection)
{
        const struct http_limits *limits = &connection->all->limits;

        if (limits->clients == NULL || forwarded_trusts(&limits->trust, &connection->client))
                return 0;
        if (clients_connect(limits->clients, &connection->client) != 0) {
                log_too_many(&connection->client);
                return -1;
        }
        connection->counted = 1;
        return 0;
}

/* The client is known: requests may come. */
static void
begin(struct connection *connection)
{
        connection_enter(connection, connection->all->tls == NULL ? STAGE_IDLE : STAGE_HANDSHAKE);
        (void)bufferevent_enable(connection->bev, EV_READ);
}

static void
on_arrived(const struct address *client, int failed, void *arg)
{
        struct connection *connection = arg;

        connection->arrival = NULL;
        (void)bufferevent_setfd(connection->bev, connection->fd);
        if (client != NULL)
                connection->client = *client;
        if (failed)
                connection_break_off(connection, HTTP_END_SLOW);
        else if (count_client(connection) != 0)
                connection_break_off(connection, HTTP_END_PER_ADDRESS);
        else
                begin(connection);
}

/* A trusted proxy may say first who the client is. */
static void
await_arrival(struct connection *connection)
{
        connection_enter(connection, STAGE_ARRIVING);
        connection->arrival = arrival_new(connection->all->base, connection->fd, on_arrived, connection);
        if (connection->arrival == NULL)
                connection_break_off(connection, HTTP_END_FULL);
        else
                (void)bufferevent_setfd(connection->bev, -1);
}

static struct address
peer_of(evutil_socket_t fd)
{
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(from);
        struct address peer;

        (void)getpeername(fd, (struct sockaddr *)&from, &len);
        address_from_socket((const struct sockaddr *)&from, &peer);
        return peer;
}

void
entrance_attach(struct connection *connection)
{
        struct connections *all = connection->all;
        void *evcon = NULL;

        bufferevent_getcb(connection->bev, NULL, NULL, NULL, &evcon);
        connection->fd = bufferevent_getfd(connection->bev);
        if (evcon == NULL || connection->fd < 0) {
                connection_free(connection);
                return;
        }
        connection->evcon = evcon;
        evhttp_connection_set_closecb(evcon, connection_on_close, connection);
        connection->client = peer_of(connection->fd);
        if (all->tls != NULL)
                send_at_once(connection->fd);
        /* Whoever has too many makes nobody else go. */
        if (connections_keep(all, connection) != 0)
                connection_break_off(connection, HTTP_END_FULL);
        else if (count_client(connection) != 0)
                connection_break_off(connection, HTTP_END_PER_ADDRESS);
        else if (connections_admit(all, connection) != 0)
                connection_break_off(connection, HTTP_END_FULL);
        else if (forwarded_trusts(&all->limits.trust, &connection->client))
                await_arrival(connection);
        else
                begin(connection);
}
