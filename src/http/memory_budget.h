#ifndef HTTP_MEMORY_BUDGET_H
#define HTTP_MEMORY_BUDGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * The memory for bodies that are in flight, shared by the servers of a process in whatever threads. A body reserves its
 * length before it is read and gives it back when its delivery is answered and stored or lost. What does not fit waits:
 * client addresses take turns, over all servers, and the bodies of an address are served in the order in which they came. So
 * neither a server nor a client can shut another one out.
 */
struct memory_budget;

#define MEMORY_WAITERS_MAX 1024

/* A body that waits for memory; its server's own, but for what memory_budget.c keeps in it. */
struct memory_waiter {
        TAILQ_ENTRY(memory_waiter) entry;
        uint64_t bytes;
        unsigned turn; /* index of its address in the turns */
        int wake_fd;
        int is_waiting; /* for memory_budget.c, and under its mutex */
        int result;     /* likewise, see memory_budget_result() */
};

/* Returns NULL when memory fails. */
struct memory_budget *memory_budget_new(uint64_t max_bytes) MUST_CHECK;

/* Nobody may hold or await memory. NULL is harmless. */
void memory_budget_free(struct memory_budget *budget);

/* Another size from now on; what is reserved beyond it stays. */
void memory_budget_resize(struct memory_budget *budget, uint64_t max_bytes);

/* Bytes that are reserved, and the size. */
uint64_t memory_budget_used(struct memory_budget *budget);
uint64_t memory_budget_size(struct memory_budget *budget);

/**
 * memory_budget_join(budget, wake_fd):
 * A server whose eventfd is written to when one of its waiters has got memory, or when somebody begins to wait anywhere: it
 * may hold slow bodies that are to be evicted. Returns 0, or -1 when memory fails. memory_budget_leave() ends it.
 */
int memory_budget_join(struct memory_budget *budget, int wake_fd) MUST_CHECK;
void memory_budget_leave(struct memory_budget *budget, int wake_fd);

/* Reserve memory if there is room and nobody waits. Returns 0 or -1. */
int memory_budget_reserve(struct memory_budget *budget, uint64_t bytes) MUST_CHECK;

/* Give memory back, for those who wait. */
void memory_budget_release(struct memory_budget *budget, uint64_t bytes);

/**
 * memory_budget_wait(budget, waiter, bytes, client, wake_fd):
 * Queue for memory. When it is there, wake_fd is written to and memory_budget_result() says so. Returns 0, or -1
 * when MEMORY_WAITERS_MAX wait and no client has more waiters than this one.
 */
int memory_budget_wait(struct memory_budget *budget, struct memory_waiter *waiter, uint64_t bytes,
                       const struct address *client, int wake_fd) MUST_CHECK;

/**
 * memory_budget_result(budget, waiter):
 * What has come of waiting: 1, it has its memory, and releases that itself; 0, it still waits; -1, it was refused, because
 * too many wait and most of them are its own client's.
 */
int memory_budget_result(struct memory_budget *budget, const struct memory_waiter *waiter);

/* Stop waiting; memory that has been granted meanwhile is given back. */
void memory_budget_stop_waiting(struct memory_budget *budget, struct memory_waiter *waiter);

/* Bytes that are missing for the one whose turn it is; 0 when nobody waits. */
uint64_t memory_budget_missing(struct memory_budget *budget);

#endif
