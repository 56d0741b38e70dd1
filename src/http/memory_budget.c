#include "http/memory_budget.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

struct member {
        LIST_ENTRY(member) entry;
        int wake_fd;
};

#define N_TURNS 256

struct memory_budget {
        pthread_mutex_t mutex;
        uint64_t used;
        uint64_t size;
        TAILQ_HEAD(waiters, memory_waiter) waiters; /* the one that came first first */
        size_t n_waiters;
        uint64_t n_served;
        uint64_t turns[N_TURNS]; /* of n_served, when addresses with this hash were served last */
        LIST_HEAD(members, member) members;
};

struct memory_budget *
memory_budget_new(uint64_t max_bytes)
{
        struct memory_budget *budget = calloc(1, sizeof(*budget));

        if (budget == NULL)
                return NULL;
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
        waiter->is_waiting = 0;
}

/* Whether so much more fits. What is larger than the whole budget fits into an empty one: a reload may have made it smaller. */
static int
fits(const struct memory_budget *budget, uint64_t bytes)
{
        return budget->used == 0 || (budget->used <= budget->size && bytes <= budget->size - budget->used);
}

/* FNV-1a. Addresses of the same hash share their turns. */
static unsigned
turn_of(const struct address *client)
{
        uint32_t hash = UINT32_C(2166136261);

        for (size_t i = 0; i < sizeof(client->bytes); i++)
                hash = (hash ^ client->bytes[i]) * UINT32_C(16777619);
        return (hash ^ hash >> 16) % N_TURNS;
}

/* The first waiter of the address that has not been served for longest; NULL: nobody waits. */
static struct memory_waiter *
find_next(struct memory_budget *budget)
{
        struct memory_waiter *waiter, *next = TAILQ_FIRST(&budget->waiters);

        TAILQ_FOREACH(waiter, &budget->waiters, entry)
        {
                if (budget->turns[waiter->turn] < budget->turns[next->turn])
                        next = waiter;
        }
        return next;
}

/* Give memory to those who wait. */
static void
serve_waiters(struct memory_budget *budget)
{
        struct memory_waiter *next;

        while ((next = find_next(budget)) != NULL && fits(budget, next->bytes)) {
                dequeue(budget, next);
                budget->turns[next->turn] = ++budget->n_served;
                budget->used += next->bytes;
                next->has_memory = 1;
                (void)eventfd_write(next->wake_fd, 1);
        }
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
        struct member *member = calloc(1, sizeof(*member));

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
        struct member *member;

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

int
memory_budget_wait(struct memory_budget *budget, struct memory_waiter *waiter, uint64_t bytes,
                   const struct address *client, int wake_fd)
{
        const struct member *member;
        int result = -1;

        *waiter = (struct memory_waiter){.bytes = bytes, .turn = turn_of(client), .wake_fd = wake_fd};
        pthread_mutex_lock(&budget->mutex);
        if (budget->n_waiters < MEMORY_WAITERS_MAX) {
                waiter->is_waiting = 1;
                TAILQ_INSERT_TAIL(&budget->waiters, waiter, entry);
                budget->n_waiters++;
                if (budget->n_waiters == 1) {
                        LIST_FOREACH(member, &budget->members, entry)
                        (void)eventfd_write(member->wake_fd, 1);
                }
                serve_waiters(budget); /* memory may have been released a moment ago */
                result = 0;
        }
        pthread_mutex_unlock(&budget->mutex);
        return result;
}

int
memory_budget_is_granted(struct memory_budget *budget, struct memory_waiter *waiter)
{
        int granted;

        pthread_mutex_lock(&budget->mutex);
        granted = waiter->has_memory;
        pthread_mutex_unlock(&budget->mutex);
        return granted;
}

void
memory_budget_stop_waiting(struct memory_budget *budget, struct memory_waiter *waiter)
{
        pthread_mutex_lock(&budget->mutex);
        if (waiter->is_waiting) {
                dequeue(budget, waiter);
        } else if (waiter->has_memory) {
                waiter->has_memory = 0;
                budget->used -= waiter->bytes;
        }
        serve_waiters(budget); /* the one that came next may need less */
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
