#ifndef HTTP_MEMORY_BUDGET_H
#define HTTP_MEMORY_BUDGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * Limits the memory of all bodies in flight, for all servers of the process, in any thread. A body reserves
 * its length before it is read, and releases it when its delivery has been answered and Kafka has reported. A
 * body that does not fit waits. Client addresses share the memory fairly, by bytes and across all servers;
 * the bodies of one address are served first come, first served. So neither a server nor a client can shut
 * out another.
 */
struct memory_budget;

#define MEMORY_WAITERS_MAX 1024

/*
 * A body that waits for memory. All members are private to memory_budget.c, and the last two are under its
 * mutex.
 */
struct memory_waiter {
        TAILQ_ENTRY(memory_waiter) entry;
        uint64_t bytes;
        unsigned turn;  /* hash of its client's address */
        uint64_t since; /* virtual time of its arrival */
        int wake_fd;
        int is_waiting;
        int result; /* of memory_budget_result() */
};

/* Returns NULL when memory or random bytes fail. */
struct memory_budget *memory_budget_new(uint64_t max_bytes) MUST_CHECK;

/* Nothing may be reserved or waiting. NULL is harmless. */
void memory_budget_free(struct memory_budget *budget);

/* Change the size. Reservations beyond it stay valid. */
void memory_budget_resize(struct memory_budget *budget, uint64_t max_bytes);

/* Reserved bytes; the size in bytes. */
uint64_t memory_budget_used(struct memory_budget *budget);
uint64_t memory_budget_size(struct memory_budget *budget);

/**
 * memory_budget_join(budget, wake_fd):
 * Register a server. The budget writes to its eventfd when one of the server's waiters is granted memory, and
 * when a body begins to wait in any server, so that slow bodies can be evicted. Returns 0, or -1 when memory
 * fails.
 */
int memory_budget_join(struct memory_budget *budget, int wake_fd) MUST_CHECK;
void memory_budget_leave(struct memory_budget *budget, int wake_fd);

/* Reserve memory, if it fits and nobody waits. Returns 0 or -1. */
int memory_budget_reserve(struct memory_budget *budget, uint64_t bytes) MUST_CHECK;

/* Release memory, and grant it to waiters. */
void memory_budget_release(struct memory_budget *budget, uint64_t bytes);

/**
 * memory_budget_wait(budget, waiter, bytes, client, wake_fd):
 * Queue for memory. When it is granted or refused, the budget writes to wake_fd. Returns 0, or -1 when
 * MEMORY_WAITERS_MAX wait and no client has more waiters than this one.
 */
int memory_budget_wait(struct memory_budget *budget, struct memory_waiter *waiter, uint64_t bytes,
                       const struct address *client, int wake_fd) MUST_CHECK;

/**
 * memory_budget_result(budget, waiter):
 * Returns 1 when the memory was granted, which the caller then releases; 0 while the body waits; -1 when it
 * was refused because the queue is full and its client has most waiters.
 */
int memory_budget_result(struct memory_budget *budget, const struct memory_waiter *waiter);

/* Stop waiting; release memory that was granted meanwhile. */
void memory_budget_stop_waiting(struct memory_budget *budget, struct memory_waiter *waiter);

/* Return the bytes that must be released before the next waiter can be served; 0 when nobody waits. */
uint64_t memory_budget_missing(struct memory_budget *budget);

#endif
