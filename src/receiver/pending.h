#ifndef RECEIVER_PENDING_H
#define RECEIVER_PENDING_H

#include <stdint.h>
#include <sys/queue.h>

#include "http/request.h"
#include "receiver/screen.h"
#include "receiver/shared.h"

/*
 * A delivery that has been handed to Kafka. Two things will happen to it, each once: its request is answered, and Kafka
 * reports what became of the record.
 *
 *   waiting   request set            --report-->  200 or 503, released
 *             |
 *             `--deadline--> 503: abandoned  (request NULL)  --report--> released
 */
struct pending {
        TAILQ_ENTRY(pending) entry;
        struct http_request *request;
        struct source_account *account;
        uint64_t bytes;   /* length of the body */
        uint64_t memory;  /* that it holds of the budget */
        int64_t began_ns; /* monotonic: when the request was complete */
        int64_t deadline_ms;
        int is_guarded; /* its signature is noted in the replay guard */
        uint8_t signature[SIGNATURE_SIZE];
        char delivery_id[DELIVERY_ID_MAX + 1];
};

/* Those of one producer; those that wait are in the order of their deadlines. For one thread. */
struct pending_list {
        struct receiver_shared *shared;
        TAILQ_HEAD(pending_head, pending) waiting;
        struct pending_head abandoned;
};

void pending_init(struct pending_list *list, struct receiver_shared *shared);

/**
 * pending_add(list, request, screened, is_replay, began_ns):
 * Let a request, which was complete at that time (monotonic), wait for its ack until ack_timeout from then. It takes over what
 * the request holds of the memory budget. Returns NULL when memory fails.
 */
struct pending *pending_add(struct pending_list *list, struct http_request *request,
                            const struct screened *screened, int is_replay, int64_t began_ns);

/* Kafka's client has not taken the record, for this reason: forget it, and leave the request to the caller. */
void pending_cancel(struct pending_list *list, struct pending *pending, const char *reason);

/*
 * Kafka reports; reason is NULL for success, else may_be_there says whether the record may be in Kafka all the same. Answers the
 * request if that still waits, and releases pending.
 */
void pending_report(struct pending_list *list, struct pending *pending, const char *reason, int may_be_there);

/* The producer is gone: report those that it has not reported as failed, for this reason; they may be in Kafka all the same. */
void pending_give_up(struct pending_list *list, const char *reason);

/* Answer 503 to those whose deadline has come. Returns how many. */
size_t pending_expire(struct pending_list *list, int64_t now_ms);

/* How many wait. Goes through all of them. */
size_t pending_count(const struct pending_list *list);

/* The first deadline, or -1 when none waits. */
int64_t pending_next_deadline(const struct pending_list *list);

#endif
