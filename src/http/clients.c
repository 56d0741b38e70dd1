#include "http/clients.h"

#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "http/head.h"

#define IPV6_PREFIX_BITS 64

struct client {
        struct address address;      /* by key_of() */
        TAILQ_ENTRY(client) in_idle; /* only without a connection */
        uint64_t n_connections;
        uint64_t n_refusals; /* in the current second */
        int64_t second;
};

struct clients {
        pthread_mutex_t mutex;
        atomic_uint_fast64_t max_connections;
        atomic_uint_fast64_t max_refusals;
        void *tree; /* balanced, by tsearch(): no choice of addresses makes it slow */
        TAILQ_HEAD(idle_clients, client) idle; /* least recently refused first */
        size_t n_idle;
};

/* Return the key of the client that an address counts for. */
static struct address
key_of(const struct address *address)
{
        return address_truncated(address, address_is_ipv4(address) ? 128 : IPV6_PREFIX_BITS);
}

/* struct client begins with its address, so that an address serves as a search key. */
static int
compare(const void *one, const void *other)
{
        return memcmp(one, other, sizeof(struct address));
}

static struct client *
find(struct clients *clients, const struct address *key)
{
        struct client **node = tfind(key, &clients->tree, compare);

        return node == NULL ? NULL : *node;
}

static void
forget(struct clients *clients, struct client *client)
{
        TAILQ_REMOVE(&clients->idle, client, in_idle);
        clients->n_idle--;
        (void)tdelete(client, &clients->tree, compare);
        free(client);
}

static void
become_idle(struct clients *clients, struct client *client)
{
        TAILQ_INSERT_TAIL(&clients->idle, client, in_idle);
        if (++clients->n_idle > CLIENTS_IDLE_MAX)
                forget(clients, TAILQ_FIRST(&clients->idle));
}

/* Add an idle client. Returns NULL when memory fails. */
static struct client *
add(struct clients *clients, const struct address *key)
{
        struct client *client = calloc(1, sizeof(*client));

        if (client == NULL)
                return NULL;
        client->address = *key;
        if (tsearch(client, &clients->tree, compare) == NULL) {
                free(client);
                return NULL;
        }
        become_idle(clients, client);
        return client;
}

struct clients *
clients_new(uint64_t max_connections, uint64_t max_refusals)
{
        struct clients *clients = calloc(1, sizeof(*clients));

        if (clients == NULL)
                return NULL;
        pthread_mutex_init(&clients->mutex, NULL);
        clients_set_limits(clients, max_connections, max_refusals);
        TAILQ_INIT(&clients->idle);
        return clients;
}

void
clients_set_limits(struct clients *clients, uint64_t max_connections, uint64_t max_refusals)
{
        atomic_store(&clients->max_connections, max_connections);
        atomic_store(&clients->max_refusals, max_refusals);
}

void
clients_free(struct clients *clients)
{
        struct client *client;

        if (clients == NULL)
                return;
        while ((client = TAILQ_FIRST(&clients->idle)) != NULL)
                forget(clients, client);
        free(clients);
}

int
clients_connect(struct clients *clients, const struct address *address)
{
        struct address key = key_of(address);
        struct client *client;
        uint64_t max = atomic_load(&clients->max_connections);
        int result = -1;

        pthread_mutex_lock(&clients->mutex);
        client = find(clients, &key);
        if (client == NULL)
                client = add(clients, &key);
        if (client != NULL && (max == 0 || client->n_connections < max)) {
                if (client->n_connections++ == 0) {
                        TAILQ_REMOVE(&clients->idle, client, in_idle);
                        clients->n_idle--;
                }
                result = 0;
        }
        pthread_mutex_unlock(&clients->mutex);
        return result;
}

void
clients_disconnect(struct clients *clients, const struct address *address)
{
        struct address key = key_of(address);
        struct client *client;

        pthread_mutex_lock(&clients->mutex);
        client = find(clients, &key);
        if (client != NULL && --client->n_connections == 0) {
                become_idle(clients, client);
                if (client->n_refusals == 0)
                        forget(clients, client);
        }
        pthread_mutex_unlock(&clients->mutex);
}

void
clients_count_refusal(struct clients *clients, const struct address *address, int64_t now_ms)
{
        struct address key = key_of(address);
        struct client *client;

        if (clients->max_refusals == 0)
                return;
        pthread_mutex_lock(&clients->mutex);
        client = find(clients, &key);
        if (client == NULL)
                client = add(clients, &key);
        if (client != NULL) {
                if (client->second != now_ms / 1000)
                        client->n_refusals = 0;
                client->second = now_ms / 1000;
                client->n_refusals++;
                if (client->n_connections == 0) {
                        TAILQ_REMOVE(&clients->idle, client, in_idle);
                        TAILQ_INSERT_TAIL(&clients->idle, client, in_idle);
                }
        }
        pthread_mutex_unlock(&clients->mutex);
}

int
clients_is_throttled(struct clients *clients, const struct address *address, int64_t now_ms)
{
        struct address key = key_of(address);
        const struct client *client;
        int throttled;

        if (clients->max_refusals == 0)
                return 0;
        pthread_mutex_lock(&clients->mutex);
        client = find(clients, &key);
        throttled =
            client != NULL && client->second == now_ms / 1000 && client->n_refusals >= clients->max_refusals;
        pthread_mutex_unlock(&clients->mutex);
        return throttled;
}

/* Trusted proxies */

static int
is_trusted_network(const struct http_trust *trust, const struct address *peer)
{
        for (size_t i = 0; i < trust->n; i++) {
                if (network_contains(&trust->networks[i], peer))
                        return 1;
        }
        return 0;
}

int
forwarded_trusts(const struct http_trust *trust, const struct address *peer, int is_unix)
{
        return is_unix ? trust->unix_sockets : is_trusted_network(trust, peer);
}

/* Parse an entry: an address, with or without brackets and port. */
static int
parse_entry(const char *text, size_t len, struct address *address)
{
        const char *end;

        head_trim(&text, &len);
        if (len > 0 && *text == '[') {
                end = memchr(text, ']', len);
                return end == NULL ? -1 : address_parse(text + 1, (size_t)(end - text - 1), address);
        }
        if (address_parse(text, len, address) == 0)
                return 0;
        end = memchr(text, ':', len);
        return end == NULL ? -1 : address_parse(text, (size_t)(end - text), address);
}

struct address
forwarded_client(const struct http_trust *trust, const struct address *peer, const char *list, size_t len)
{
        struct address client = *peer, entry;
        int is_trusted = 1;

        while (len > 0 && is_trusted) {
                const char *comma = memrchr(list, ',', len);
                size_t start = comma == NULL ? 0 : (size_t)(comma - list) + 1;

                if (parse_entry(list + start, len - start, &entry) != 0)
                        break;
                client = entry;
                is_trusted = is_trusted_network(trust, &client);
                len = start == 0 ? 0 : start - 1;
        }
        return client;
}
