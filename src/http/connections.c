#include "http/connections.h"

#include <stdlib.h>

#include <openssl/rand.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/pool.h"
#include "http/connection.h"
#include "http/entrance.h"
#include "http/session.h"

#define REPLY_PATIENCE_MS 1000 /* with a client that takes its answer, before its connection may make room */

void
connections_next_id(struct connections *connections, char id[17])
{
        /* An odd factor visits every 64-bit number once. */
        uint64_t number = connections->id_seed + connections->n_ids++ * UINT64_C(0x9e3779b97f4a7c15);

        uint8_t bytes[sizeof(number)];

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)(number >> (8 * (sizeof(bytes) - 1 - i)));
        hex_encode(bytes, sizeof(bytes), id);
}

/*
 * The one that is to make room, but not the newcomer: one that was refused, and only lingers; else the one that has been longest
 * about what it does, waiting or sending or not taking an answer. So who comes in has the time in which all others are replaced.
 */
static struct connection *
longest(struct connections *connections, const struct connection *newcomer)
{
        struct connection_list *lists[] = {&connections->waiting, &connections->heads, &connections->bodies,
                                           &connections->replies};
        struct connection *longest = TAILQ_FIRST(&connections->refusals);
        int64_t now_ms = clock_monotonic_ms();

        if (longest != NULL)
                return longest;
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                struct connection *first = TAILQ_FIRST(lists[i]);

                if (first == NULL || first->evcon == NULL || first == newcomer)
                        continue;
                if (first->stage == STAGE_REPLYING && now_ms - first->since_ms < REPLY_PATIENCE_MS)
                        continue;
                if (longest == NULL || first->since_ms < longest->since_ms)
                        longest = first;
        }
        return longest;
}

/* Returns whether there was one that could go. */
static int
let_go(struct connections *connections, const struct connection *newcomer)
{
        struct connection *connection = longest(connections, newcomer);

        if (connection != NULL)
                connection_break_off(connection, HTTP_END_MADE_ROOM);
        return connection != NULL;
}

int
connections_make_room(struct connections *connections)
{
        return let_go(connections, NULL);
}

/* How many all servers have that share the limit. */
static uint64_t
n_of_all(const struct connections *connections)
{
        const struct http_census *census = connections->limits.census;

        return census == NULL ? connections->n : http_census_open(census);
}

/* Whether one of ours has to go. Threads do not accept evenly, so what counts is how many there are in all. */
static int
are_too_many(const struct connections *connections)
{
        return connections->n > connections->limits.own_connections &&
               n_of_all(connections) > connections->limits.max_connections;
}

int
connections_admit(struct connections *all, const struct connection *newcomer)
{
        return !are_too_many(all) || let_go(all, newcomer) ? 0 : -1;
}

void
connections_keep_to_limits(struct connections *connections)
{
        size_t before = connections->n + 1;

        while (connections->n < before && are_too_many(connections)) {
                before = connections->n;
                (void)let_go(connections, NULL);
        }
}

/* Sizes of the pool's: for addresses of IPv4 and IPv6 as text, and for the lists of headers of a request. */
static const size_t address_sizes[] = {32, 32, 32, 64};

static int
prepare_address_memory(struct connections *connections)
{
        for (size_t i = 0; i < ARRAY_LEN(address_sizes); i++) {
                if (connections->address_memory[i] == NULL)
                        connections->address_memory[i] = malloc(address_sizes[i]);
                if (connections->address_memory[i] == NULL)
                        return -1;
        }
        return 0;
}

/*
 * libevent 2.1.12 crashes when it gets the memory for a connection but none for its address, or for a request but none for its lists of
 * headers: it then releases what is not complete. It takes that memory from the pool, where this puts it, as the next thing it does.
 */
static void
give_address_memory(struct connections *connections)
{
        for (size_t i = 0; i < ARRAY_LEN(address_sizes); i++) {
                pool_free(connections->address_memory[i]);
                connections->address_memory[i] = NULL;
        }
}

int
connections_prepare(struct connections *connections)
{
        if (connections->spare == NULL)
                connections->spare = connection_new(connections);
        give_address_memory(connections);
        return connections->spare == NULL || prepare_address_memory(connections) != 0 ? -1 : 0;
}

size_t
connections_count(const struct connections *connections)
{
        return connections->n;
}

int
connections_are_full(const struct connections *connections)
{
        return connections->n >= connections->limits.own_connections &&
               n_of_all(connections) >= connections->limits.max_connections;
}

/* Make the spare one anew. If that fails, it must do as it is. */
static void
renew_spare(struct connections *connections)
{
        struct connection *newer = connection_new(connections);

        if (newer == NULL)
                return;
        connection_discard(connections->spare);
        connections->spare = newer;
}

/* The one of those without a request that has waited longest goes. Returns whether there was one. */
static int
let_waiting_go(struct connections *connections)
{
        struct connection *first = TAILQ_FIRST(&connections->waiting);

        if (first == NULL || first->evcon == NULL)
                return 0;
        connection_break_off(first, HTTP_END_MADE_ROOM);
        return 1;
}

void
connections_set_limits(struct connections *connections, const struct http_limits *limits)
{
        size_t before = connections->n + 1;

        connections->limits = *limits;
        if (connections->spare != NULL)
                renew_spare(connections);
        while (connections->n < before && are_too_many(connections)) {
                before = connections->n;
                if (!let_waiting_go(connections))
                        break;
        }
}

struct bufferevent *
connections_open(struct connections *connections)
{
        struct connection *connection;

        if (connections->spare == NULL)
                return NULL;
        if (connections->tls != NULL && !session_is_current(connections->spare))
                renew_spare(connections); /* it was made with a certificate that has been replaced */
        connection = connections->spare;
        connections->spare = NULL;
        entrance_accept(connection);
        return connection->bev;
}

int
connections_keep(struct connections *all, struct connection *connection)
{
        size_t fd = (size_t)connection->fd;

        if (fd >= all->by_fd_size) {
                size_t size = fd + 256;
                struct connection **by_fd = reallocarray(all->by_fd, size, sizeof(struct connection *));

                if (by_fd == NULL)
                        return -1;
                for (size_t i = all->by_fd_size; i < size; i++)
                        by_fd[i] = NULL;
                all->by_fd = by_fd;
                all->by_fd_size = size;
        }
        all->by_fd[fd] = connection;
        return 0;
}

/* The one that evhttp knows as evcon; NULL when it has gone or was taken away from evhttp. */
static struct connection *
find(const struct connections *connections, struct evhttp_connection *evcon)
{
        struct bufferevent *bev = evcon == NULL ? NULL : evhttp_connection_get_bufferevent(evcon);
        evutil_socket_t fd = bev == NULL ? -1 : bufferevent_getfd(bev);
        struct connection *connection;

        if (fd < 0 || (size_t)fd >= connections->by_fd_size)
                return NULL;
        connection = connections->by_fd[fd];
        return connection == NULL || connection->refused ? NULL : connection;
}

struct address
connections_client(const struct connections *connections, struct evhttp_connection *evcon)
{
        const struct connection *connection = find(connections, evcon);

        return connection == NULL ? (struct address){{0}} : connection->client;
}

const struct http_trust *
connections_trust(const struct connections *connections)
{
        return &connections->limits.trust;
}

void
connections_replying(struct connections *connections, struct evhttp_connection *evcon)
{
        struct connection *connection = find(connections, evcon);

        if (connection != NULL && connection->stage == STAGE_HANDLING)
                connection_replying(connection);
}

void
connections_replied(struct connections *connections, struct evhttp_connection *evcon)
{
        struct connection *connection = find(connections, evcon);

        if (connection != NULL && connection->n_complete > 0)
                connection_replied(connection);
}

struct connections *
connections_new(struct event_base *base, const struct http_limits *limits, struct tls *tls,
                const struct http_callbacks *callbacks, void *arg)
{
        struct connections *connections = calloc(1, sizeof(*connections));

        if (connections == NULL)
                return NULL;
        connections->base = base;
        connections->limits = *limits;
        connections->tls = tls;
        connections->callbacks = callbacks;
        connections->arg = arg;
        TAILQ_INIT(&connections->waiting);
        TAILQ_INIT(&connections->heads);
        TAILQ_INIT(&connections->bodies);
        TAILQ_INIT(&connections->replies);
        TAILQ_INIT(&connections->refusals);
        if (RAND_bytes((unsigned char *)&connections->id_seed, sizeof(connections->id_seed)) != 1) {
                free(connections);
                return NULL;
        }
        return connections;
}

void
connections_free(struct connections *connections)
{
        struct connection *connection;

        if (connections == NULL)
                return;
        /* evhttp has released its own; what is left was accepted too late to be attached. */
        while ((connection = TAILQ_FIRST(&connections->waiting)) != NULL)
                connection_free(connection);
        if (connections->spare != NULL)
                connection_discard(connections->spare);
        give_address_memory(connections);
        free(connections->by_fd);
        free(connections);
}
