#ifndef RECEIVER_PENDING_H
#define RECEIVER_PENDING_H

#include <stdint.h>
#include <sys/queue.h>

#include "http/request.h"
#include "receiver/screen.h"
#include "receiver/shared.h"

/*
 * A delivery that was handed to Kafka. Two things happen to it, each once: its request is answered, and Kafka
 * reports the fate of the record.
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
        uint64_t memory;  /* its share of the memory budget */
        int64_t began_ns; /* monotonic: when the request was complete */
        int64_t deadline_ms;
        int is_guarded; /* the replay guard knows its signature */
        uint8_t signature[SIGNATURE_SIZE];
        char delivery_id[DELIVERY_ID_MAX + 1];
};

/* The deliveries of one producer; the waiting ones are in the order of their deadlines. For one thread. */
struct pending_list {
        struct receiver_shared *shared;
        TAILQ_HEAD(pending_head, pending) waiting;
        struct pending_head abandoned;
};

void pending_init(struct pending_list *list, struct receiver_shared *shared);

/**
 * pending_add(list, request, screened, is_replay, began_ns):
 * Let a request wait for its acknowledgement until ack_timeout after began_ns (monotonic), when it was
 * complete. The request's share of the memory budget moves to the pending delivery. Returns NULL when memory
 * fails.
 */
struct pending *pending_add(struct pending_list *list, struct http_request *request,
                            const struct screened *screened, int is_replay, int64_t began_ns);

/* librdkafka did not accept the record: release pending. The caller answers the request. */
void pending_cancel(struct pending_list *list, struct pending *pending, const char *reason);

/*
 * Handle Kafka's report. reason is NULL for success; otherwise may_be_there says whether the record may
 * nevertheless be in Kafka. Answers the request if it still waits, and releases pending.
 */
void pending_report(struct pending_list *list, struct pending *pending, const char *reason, int may_be_there);

/*
 * The producer is gone: report all deliveries as failed, for this reason; they may nevertheless be in Kafka.
 */
void pending_fail_all(struct pending_list *list, const char *reason);

/* Answer 503 to the deliveries whose deadline has passed. Returns their number. */
size_t pending_expire(struct pending_list *list, int64_t now_ms);

/* Number of waiting deliveries. Takes time in proportion to it. */
size_t pending_count(const struct pending_list *list);

/* The first deadline, or -1 when no delivery waits. */
int64_t pending_next_deadline(const struct pending_list *list);

#endif
