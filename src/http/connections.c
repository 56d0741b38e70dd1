#include "http/connections.h"
#include "http/gate_accept.h"
#include "http/gate_read.h"
#include "http/gate_write.h"
#include "http/request_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/pool.h"

#define UNREAD_REPLY_MS 1000 /* an answer unread for longer may be cut off for another connection */
#define SLOW_GRACE_MS 500    /* before the speed of a body is measured */
#define SLOW_MS 2000         /* a body expected to take longer is slow */
#define EVICTIONS_MAX 256    /* in one pass of the event loop, since each looks at all bodies */
#define HELD_MAX_MS 1500 /* a body that has held its memory for longer is slow; less than MEMORY_WAIT_MS */

void
connections_next_id(struct connections *all, char id[ANSWER_ID_SIZE])
{
        /* An odd factor visits every 64-bit number once. */
        uint64_t number = all->id_seed + all->n_ids++ * UINT64_C(0x9e3779b97f4a7c15);
        uint8_t bytes[sizeof(number)];

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)(number >> (8 * (sizeof(bytes) - 1 - i)));
        bytes_to_hex(bytes, sizeof(bytes), id);
}

/* Counts and lists */

void
connections_count_in(struct connection *connection)
{
        connection->all->n++;
        connection_stats_accepted(connection->all->limits.stats);
}

void
connections_count_out(struct connection *connection, enum http_end why)
{
        connection->all->n--;
        connection_stats_ended(connection->all->limits.stats, why);
}

void
connections_count_refused(struct connection *connection, const struct http_error *error, const char *id)
{
        const struct connections *all = connection->all;
        const struct http_request *request = connection->request;
        const struct address *client = request == NULL ? &connection->client : &request->client;
        const struct http_refusal refusal = {
            .status = error->status,
            .reason = error->message,
            .content_length = request == NULL ? 0 : request->head.content_length,
            .client = *client,
            .is_proxy = forwarded_trusts(&all->limits.trust, &connection->client, connection->is_unix) &&
                        memcmp(client, &connection->client, sizeof(*client)) == 0,
            .request_id = id,
        };

        if (all->callbacks.on_refused != NULL)
                all->callbacks.on_refused(&refusal, all->arg);
}

static int
waits_for_client(enum gate_state state)
{
        return state == GATE_PROXY || state == GATE_HANDSHAKE || state == GATE_IDLE || state == GATE_HEAD ||
               state == GATE_BODY;
}

static void
leave_queue(struct connection *connection)
{
        if (connection->is_queued)
                TAILQ_REMOVE(&connection->all->queue, connection, turn);
        connection->is_queued = 0;
}

/*
 * A connection moves to the end of the queue with each genuine request; until it has sent a request, neither
 * a handshake nor the first byte of a request moves it. A client all of whose requests were refused goes to
 * the front: or else it could stay behind an honest client that has just connected, by cheap requests.
 */
static void
queue(struct connection *connection, enum gate_state state)
{
        if (!waits_for_client(state) || (state == GATE_HEAD && connection->has_asked))
                leave_queue(connection);
        if (!waits_for_client(state) || connection->is_queued)
                return;
        connection->is_queued = 1;
        if (connection->has_asked && !connection->was_genuine)
                TAILQ_INSERT_HEAD(&connection->all->queue, connection, turn);
        else
                TAILQ_INSERT_TAIL(&connection->all->queue, connection, turn);
}

void
connections_move(struct connection *connection, enum gate_state state)
{
        struct connection_list *lists = connection->all->lists;

        if (connection->state != GATE_N_STATES)
                TAILQ_REMOVE(&lists[connection->state], connection, entry);
        connection->state = state;
        queue(connection, state);
        if (state == GATE_HANDLING)
                connection->has_asked = 1;
        if (state != GATE_N_STATES)
                TAILQ_INSERT_TAIL(&lists[state], connection, entry);
}

/* Limits */

/*
 * Choose the connection to close for another: one that lingers; else one that does not read its answer; else
 * the first in the queue. So an admitted connection is safe until all others have been replaced, or have sent
 * genuine requests.
 */
static struct connection *
find_victim(const struct connections *all, const struct connection *admitted)
{
        struct connection *first = TAILQ_FIRST(&all->lists[GATE_LINGERING]);

        if (first != NULL)
                return first;
        first = TAILQ_FIRST(&all->lists[GATE_REPLYING]);
        if (first != NULL && clock_coarse_ms() - first->since_ms >= UNREAD_REPLY_MS)
                return first;
        first = TAILQ_FIRST(&all->queue);
        return first != NULL && first == admitted ? TAILQ_NEXT(first, turn) : first;
}

static int
close_victim(struct connections *all, const struct connection *admitted)
{
        struct connection *victim = find_victim(all, admitted);

        if (victim != NULL)
                gate_end(victim, HTTP_END_MADE_ROOM);
        return victim != NULL;
}

int
connections_make_room(struct connections *all)
{
        return close_victim(all, NULL);
}

/* Count the connections of all servers that share the limit. */
static uint64_t
count_all(const struct connections *all)
{
        return all->limits.stats == NULL ? all->n : connection_stats_open(all->limits.stats);
}

/* Returns 1 when this server must close a connection. Threads do not accept evenly, so all servers' count. */
static int
are_too_many(const struct connections *all)
{
        return all->n > all->limits.own_connections && count_all(all) > all->limits.max_connections;
}

int
connections_admit(struct connections *all, const struct connection *admitted)
{
        return !are_too_many(all) || close_victim(all, admitted) ? 0 : -1;
}

int
connections_are_full(const struct connections *all)
{
        return all->n >= all->limits.own_connections && count_all(all) >= all->limits.max_connections;
}

void
connections_keep_to_limits(struct connections *all)
{
        while (are_too_many(all) && close_victim(all, NULL))
                ;
}

static void
set_limits(struct connections *all, const struct http_limits *limits)
{
        all->limits = *limits;
        all->framing_limits = (struct framing_limits){.max_header_bytes = limits->max_header_bytes,
                                                      .max_headers = limits->max_headers,
                                                      .max_body = limits->max_body};
}

void
connections_set_limits(struct connections *all, const struct http_limits *limits)
{
        static const enum gate_state idle[] = {GATE_PROXY, GATE_HANDSHAKE, GATE_IDLE};

        set_limits(all, limits);
        for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
                struct connection *first;

                while (are_too_many(all) && (first = TAILQ_FIRST(&all->lists[idle[i]])) != NULL)
                        gate_end(first, HTTP_END_MADE_ROOM);
        }
}

/* Memory for bodies */

void
connections_serve_waiting(struct connections *all)
{
        struct connection *connection, *next;

        for (connection = TAILQ_FIRST(&all->lists[GATE_WAITING]); connection != NULL; connection = next) {
                next = TAILQ_NEXT(connection, entry);
                switch (memory_budget_result(all->limits.budget, &connection->request->waiter)) {
                case 1:
                        gate_take_granted(connection);
                        gate_advance_later(connection);
                        break;
                case -1:
                        gate_refuse(connection, 503, "too many bodies wait for memory; send it again");
                        break;
                default:
                        break;
                }
        }
}

/*
 * Estimate the time to completion of a body from its speed since the last measurement. The estimate does not
 * catch chunked bodies, whose end is not known, and clients that slow down steadily: slowness_of() limits
 * those by time.
 */
static void
measure_body(struct connection *connection, int64_t now_ms)
{
        struct http_request *request = connection->request;
        int64_t elapsed_ms = now_ms - request->mark_ms;
        uint64_t come = request->body_len - request->mark_len, left = connection->framing.left;

        if (elapsed_ms < SLOW_GRACE_MS)
                return;
        request->mark_ms = now_ms;
        request->mark_len = request->body_len;
        request->expected_ms = come == 0 ? INT64_MAX : (int64_t)(left * (uint64_t)elapsed_ms / come);
}

static int64_t
slowness_of(const struct http_request *request, int64_t now_ms)
{
        int64_t held_ms = now_ms - request->reserved_ms;

        if (request->reserved == 0)
                return 0;
        return held_ms > HELD_MAX_MS ? SLOW_MS + held_ms : request->expected_ms;
}

/* Return the slowest of the slow bodies that hold memory, or NULL. */
static struct connection *
find_slow(const struct connections *all, int64_t now_ms)
{
        struct connection *connection, *slowest = NULL;
        int64_t longest_ms = SLOW_MS;

        TAILQ_FOREACH(connection, &all->lists[GATE_BODY], entry)
        {
                int64_t ms = slowness_of(connection->request, now_ms);

                if (ms > longest_ms) {
                        longest_ms = ms;
                        slowest = connection;
                }
        }
        return slowest;
}

int
connections_evict_slow(struct connections *all)
{
        int64_t now_ms = clock_coarse_ms();
        struct connection *connection;
        int n = 0;

        if (memory_budget_missing(all->limits.budget) == 0)
                return 0;
        TAILQ_FOREACH(connection, &all->lists[GATE_BODY], entry)
        measure_body(connection, now_ms);
        while (n++ < EVICTIONS_MAX && memory_budget_missing(all->limits.budget) > 0 &&
               (connection = find_slow(all, now_ms)) != NULL)
                gate_refuse(connection, 503, "the body came too slowly while others waited; send it again");
        return 1;
}

void
connection_free(struct connection *connection)
{
        connections_move(connection, GATE_N_STATES);
        if (!gate_evhttp_is_gone(connection))
                bufferevent_trigger_event(connection->letter_box, BEV_EVENT_READING | BEV_EVENT_EOF, 0);
        (void)bufferevent_decref(connection->letter_box);
        (void)event_del(&connection->timer);
        stream_close(&connection->stream);
        free(connection->proxy_header);
        pool_free(connection->kept);
        framing_clear(&connection->framing);
        free(connection);
}

/* Connections allocated ahead */

struct connection *
connection_new(struct connections *all)
{
        struct connection *connection = calloc(1, sizeof(*connection));

        if (connection == NULL)
                return NULL;
        connection->all = all;
        connection->stream.fd = -1;
        connection->state = GATE_N_STATES;
        framing_init(&connection->framing, &all->framing_limits);
        (void)evtimer_assign(&connection->timer, all->base, gate_on_timer, connection);
        connection->letter_box = bufferevent_socket_new(all->base, -1, BEV_OPT_CLOSE_ON_FREE);
        if (connection->letter_box == NULL) {
                free(connection);
                return NULL;
        }
        return connection;
}

/* Block sizes of the pool: an address as text, IPv4 and IPv6; the two lists of headers of a request. */
static const size_t address_sizes[] = {32, 32, 32, 64};

static int
prepare_address_memory(struct connections *all)
{
        for (size_t i = 0; i < ARRAY_LEN(address_sizes); i++) {
                if (all->address_memory[i] == NULL)
                        all->address_memory[i] = malloc(address_sizes[i]);
                if (all->address_memory[i] == NULL)
                        return -1;
        }
        return 0;
}

/*
 * libevent 2.1.12 crashes when it gets memory for a connection but not for its address, or for a request but
 * not for its lists of headers: it frees an incomplete object. It allocates from the pool, so put the memory
 * there beforehand.
 */
static void
give_address_memory(struct connections *all)
{
        for (size_t i = 0; i < ARRAY_LEN(address_sizes); i++) {
                pool_free(all->address_memory[i]);
                all->address_memory[i] = NULL;
        }
}

int
connections_prepare(struct connections *all)
{
        if (all->next == NULL)
                all->next = connection_new(all);
        give_address_memory(all);
        return all->next == NULL || prepare_address_memory(all) != 0 ? -1 : 0;
}

struct bufferevent *
connections_accept(struct connections *all)
{
        struct connection *connection = all->next;

        if (connection == NULL)
                return NULL;
        all->next = NULL;
        gate_accept(connection);
        return connection->letter_box;
}

struct connections *
connections_new(struct event_base *base, const struct http_limits *limits, struct tls *tls,
                const struct http_callbacks *callbacks, void *arg)
{
        struct connections *all = calloc(1, sizeof(*all));

        if (all == NULL)
                return NULL;
        all->base = base;
        all->tls = tls;
        all->callbacks = *callbacks;
        all->arg = arg;
        all->wake_fd = -1;
        set_limits(all, limits);
        TAILQ_INIT(&all->queue);
        for (size_t i = 0; i < GATE_N_STATES; i++)
                TAILQ_INIT(&all->lists[i]);
        if (limits->budget != NULL) {
                all->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
                if (all->wake_fd >= 0 && memory_budget_join(limits->budget, all->wake_fd) != 0) {
                        (void)close(all->wake_fd);
                        all->wake_fd = -1;
                }
        }
        if ((limits->budget != NULL && all->wake_fd < 0) ||
            RAND_bytes((unsigned char *)&all->id_seed, sizeof(all->id_seed)) != 1) {
                connections_free(all);
                return NULL;
        }
        return all;
}

void
connections_free(struct connections *all)
{
        if (all == NULL)
                return;
        for (size_t i = 0; i < GATE_N_STATES; i++) {
                struct connection *connection;

                while ((connection = TAILQ_FIRST(&all->lists[i])) != NULL) {
                        gate_end(connection, HTTP_END_CLOSED);
                        connection_free(connection);
                }
        }
        if (all->next != NULL)
                connection_free(all->next);
        give_address_memory(all);
        if (all->wake_fd >= 0) {
                memory_budget_leave(all->limits.budget, all->wake_fd);
                (void)close(all->wake_fd);
        }
        free(all);
}
