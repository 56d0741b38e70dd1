#include "http/memory_budget.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <openssl/rand.h>

struct budget_member {
        LIST_ENTRY(budget_member) entry;
        int wake_fd;
};

#define N_TURNS 4096    /* of addresses, by a hash that clients cannot predict */
#define GRANT_COST 4096 /* bytes that a grant counts for beside the body's */

/*
 * Waiters are served by weighted fair queueing with equal weights (Demers, Keshav, Shenker, 1989). A body's
 * tag is the virtual time at which it would have its memory if addresses shared grants byte by byte; the
 * smallest tag is served first. So a client that awaits little memory waits for little, whatever others
 * await.
 */
struct memory_budget {
        pthread_mutex_t mutex;
        uint64_t used;
        uint64_t size;
        TAILQ_HEAD(waiters, memory_waiter) waiters; /* oldest first */
        size_t n_waiters;
        uint64_t seed;
        uint64_t now;           /* virtual time: granted bytes for each address that waits */
        uint64_t latest;        /* the greatest tag that was served */
        uint64_t tags[N_TURNS]; /* by turn: the tag of its last grant */
        /* by turn: arrival of its last waiter, if that left without memory; else 0 */
        uint64_t unserved[N_TURNS];
        uint16_t n_of_turn[N_TURNS]; /* waiters */
        size_t n_turns;              /* that have waiters */
        LIST_HEAD(members, budget_member) members;
};

struct memory_budget *
memory_budget_new(uint64_t max_bytes)
{
        struct memory_budget *budget = calloc(1, sizeof(*budget));

        if (budget == NULL)
                return NULL;
        if (RAND_bytes((unsigned char *)&budget->seed, sizeof(budget->seed)) != 1) {
                free(budget);
                return NULL;
        }
        pthread_mutex_init(&budget->mutex, NULL);
        budget->size = max_bytes;
        TAILQ_INIT(&budget->waiters);
        LIST_INIT(&budget->members);
        return budget;
}

void
memory_budget_free(struct memory_budget *budget)
{
        if (budget == NULL)
                return;
        pthread_mutex_destroy(&budget->mutex);
        free(budget);
}

static void
dequeue(struct memory_budget *budget, struct memory_waiter *waiter)
{
        TAILQ_REMOVE(&budget->waiters, waiter, entry);
        budget->n_waiters--;
        if (--budget->n_of_turn[waiter->turn] == 0)
                budget->n_turns--;
        waiter->is_waiting = 0;
}

/* A body larger than the budget, which a reload may have shrunk, fits when nothing is reserved. */
static int
fits(const struct memory_budget *budget, uint64_t bytes)
{
        return budget->used == 0 || (budget->used <= budget->size && bytes <= budget->size - budget->used);
}

/* FNV-1a with a random basis. Addresses with the same hash share a turn. An IPv6 /64 counts as one client. */
static unsigned
turn_of(const struct memory_budget *budget, const struct address *client)
{
        struct address key = address_truncated(client, address_is_ipv4(client) ? 128 : 64);
        uint64_t hash = budget->seed;

        for (size_t i = 0; i < sizeof(key.bytes); i++)
                hash = (hash ^ key.bytes[i]) * UINT64_C(0x100000001b3);
        return (unsigned)((hash ^ hash >> 32) % N_TURNS);
}

static uint64_t
cost_of(const struct memory_waiter *waiter)
{
        return waiter->bytes + GRANT_COST;
}

static uint64_t
tag_of(const struct memory_budget *budget, const struct memory_waiter *waiter)
{
        uint64_t last = budget->tags[waiter->turn];

        return (last > waiter->since ? last : waiter->since) + cost_of(waiter);
}

/* Of equal tags, that of the turn which was served longer ago comes first. */
static int
is_before(const struct memory_budget *budget, const struct memory_waiter *a, const struct memory_waiter *b)
{
        uint64_t tag_a = tag_of(budget, a), tag_b = tag_of(budget, b);

        return tag_a < tag_b || (tag_a == tag_b && budget->tags[a->turn] < budget->tags[b->turn]);
}

/* Return the waiter with the smallest tag among the oldest of each turn, or NULL. */
static struct memory_waiter *
find_next(struct memory_budget *budget)
{
        uint8_t is_seen[N_TURNS];
        struct memory_waiter *waiter, *next = TAILQ_FIRST(&budget->waiters);

        if (budget->n_waiters < 2)
                return next;
        memset(is_seen, 0, sizeof(is_seen));
        TAILQ_FOREACH(waiter, &budget->waiters, entry)
        {
                if (is_seen[waiter->turn])
                        continue;
                is_seen[waiter->turn] = 1;
                if (is_before(budget, waiter, next))
                        next = waiter;
        }
        return next;
}

static void
grant(struct memory_budget *budget, struct memory_waiter *waiter)
{
        uint64_t tag = tag_of(budget, waiter);

        budget->used += waiter->bytes;
        budget->tags[waiter->turn] = tag;
        budget->unserved[waiter->turn] = 0;
        budget->now += cost_of(waiter) / budget->n_turns;
        if (tag > budget->latest)
                budget->latest = tag;
        dequeue(budget, waiter);
        waiter->result = 1;
        (void)eventfd_write(waiter->wake_fd, 1);
}

/* Grant memory to waiters while it fits. When none is left, all addresses are equal again. */
static void
serve_waiters(struct memory_budget *budget)
{
        struct memory_waiter *next;

        while ((next = find_next(budget)) != NULL && fits(budget, next->bytes))
                grant(budget, next);
        if (next == NULL && budget->latest > budget->now)
                budget->now = budget->latest;
}

void
memory_budget_resize(struct memory_budget *budget, uint64_t max_bytes)
{
        pthread_mutex_lock(&budget->mutex);
        budget->size = max_bytes;
        serve_waiters(budget);
        pthread_mutex_unlock(&budget->mutex);
}

uint64_t
memory_budget_used(struct memory_budget *budget)
{
        uint64_t used;

        pthread_mutex_lock(&budget->mutex);
        used = budget->used;
        pthread_mutex_unlock(&budget->mutex);
        return used;
}

uint64_t
memory_budget_size(struct memory_budget *budget)
{
        uint64_t size;

        pthread_mutex_lock(&budget->mutex);
        size = budget->size;
        pthread_mutex_unlock(&budget->mutex);
        return size;
}

int
memory_budget_join(struct memory_budget *budget, int wake_fd)
{
        struct budget_member *member = calloc(1, sizeof(*member));

        if (member == NULL)
                return -1;
        member->wake_fd = wake_fd;
        pthread_mutex_lock(&budget->mutex);
        LIST_INSERT_HEAD(&budget->members, member, entry);
        pthread_mutex_unlock(&budget->mutex);
        return 0;
}

void
memory_budget_leave(struct memory_budget *budget, int wake_fd)
{
        struct budget_member *member;

        pthread_mutex_lock(&budget->mutex);
        LIST_FOREACH(member, &budget->members, entry)
        {
                if (member->wake_fd == wake_fd)
                        break;
        }
        if (member != NULL)
                LIST_REMOVE(member, entry);
        pthread_mutex_unlock(&budget->mutex);
        free(member);
}

int
memory_budget_reserve(struct memory_budget *budget, uint64_t bytes)
{
        int result = -1;

        pthread_mutex_lock(&budget->mutex);
        if (budget->n_waiters == 0 && fits(budget, bytes)) {
                budget->used += bytes;
                result = 0;
        }
        pthread_mutex_unlock(&budget->mutex);
        return result;
}

void
memory_budget_release(struct memory_budget *budget, uint64_t bytes)
{
        pthread_mutex_lock(&budget->mutex);
        budget->used -= bytes;
        serve_waiters(budget);
        pthread_mutex_unlock(&budget->mutex);
}

/*
 * Refuse the newest waiter of the client that has most waiters. Returns -1 when that is `added`'s own client.
 */
static int
make_room_for(struct memory_budget *budget, const struct memory_waiter *added)
{
        struct memory_waiter *waiter, *newest = NULL;
        unsigned most = added->turn;

        for (unsigned turn = 0; turn < N_TURNS; turn++) {
                if (budget->n_of_turn[turn] > budget->n_of_turn[most] + 1)
                        most = turn;
        }
        if (most == added->turn)
                return -1;
        TAILQ_FOREACH_REVERSE(waiter, &budget->waiters, waiters, entry)
        {
                if (newest == NULL && waiter->turn == most)
                        newest = waiter;
        }
        dequeue(budget, newest);
        newest->result = -1;
        (void)eventfd_write(newest->wake_fd, 1);
        return 0;
}

/*
 * Return the virtual time from which a waiter counts. A client whose last body left without memory keeps its
 * place for the next one, but for no more than that body's cost: else a client whose share takes longer than
 * a body may wait would never be served.
 */
static uint64_t
arrival_of(const struct memory_budget *budget, const struct memory_waiter *waiter)
{
        uint64_t unserved = budget->unserved[waiter->turn], cost = cost_of(waiter);

        if (unserved == 0 || budget->n_of_turn[waiter->turn] > 0)
                return budget->now;
        return budget->now - unserved > cost ? budget->now - cost : unserved;
}

static void
enqueue(struct memory_budget *budget, struct memory_waiter *waiter)
{
        const struct budget_member *member;

        waiter->is_waiting = 1;
        TAILQ_INSERT_TAIL(&budget->waiters, waiter, entry);
        waiter->since = arrival_of(budget, waiter);
        if (budget->n_of_turn[waiter->turn]++ == 0)
                budget->n_turns++;
        if (++budget->n_waiters > 1)
                return;
        LIST_FOREACH(member, &budget->members, entry)
        (void)eventfd_write(member->wake_fd, 1);
}

int
memory_budget_wait(struct memory_budget *budget, struct memory_waiter *waiter, uint64_t bytes,
                   const struct address *client, int wake_fd)
{
        int result = -1;

        *waiter = (struct memory_waiter){.bytes = bytes, .turn = turn_of(budget, client), .wake_fd = wake_fd};
        pthread_mutex_lock(&budget->mutex);
        if (budget->n_waiters < MEMORY_WAITERS_MAX || make_room_for(budget, waiter) == 0) {
                enqueue(budget, waiter);
                serve_waiters(
                    budget); /* memory may have been released since memory_budget_reserve() failed */
                result = 0;
        }
        pthread_mutex_unlock(&budget->mutex);
        return result;
}

int
memory_budget_result(struct memory_budget *budget, const struct memory_waiter *waiter)
{
        int result;

        pthread_mutex_lock(&budget->mutex);
        result = waiter->result;
        pthread_mutex_unlock(&budget->mutex);
        return result;
}

void
memory_budget_stop_waiting(struct memory_budget *budget, struct memory_waiter *waiter)
{
        pthread_mutex_lock(&budget->mutex);
        if (waiter->is_waiting) {
                dequeue(budget, waiter);
                if (budget->n_of_turn[waiter->turn] == 0)
                        budget->unserved[waiter->turn] = waiter->since;
        } else if (waiter->result > 0) {
                budget->used -= waiter->bytes;
        }
        waiter->result = 0;
        serve_waiters(budget); /* the next waiter may need less */
        pthread_mutex_unlock(&budget->mutex);
}

uint64_t
memory_budget_missing(struct memory_budget *budget)
{
        const struct memory_waiter *next;
        uint64_t missing = 0;

        pthread_mutex_lock(&budget->mutex);
        next = find_next(budget);
        if (next != NULL)
                missing =
                    budget->used + next->bytes > budget->size ? budget->used + next->bytes - budget->size : 1;
        pthread_mutex_unlock(&budget->mutex);
        return missing;
}
