#ifndef RECEIVER_PENDING_H
#define RECEIVER_PENDING_H

#include <stdint.h>
#include <sys/queue.h>

#include "http/request.h"
#include "kafka/producer.h"
#include "receiver/screen.h"
#include "receiver/shared.h"
#include "spool/spool_writer.h"

/*
 * A delivery that was handed to Kafka, to the spool, or to both. Its request is answered once: 200 when the
 * first of them has it. It is released when both have reported.
 *
 *   waiting    request set    --Kafka has it--> 200, released
 *      |
 *      +--failed, or deadline--> 503, or with a spool:
 *      |
 *   spooling   request set    --on the disk, or Kafka has it--> 200
 *      |                      --failed, or deadline--> 503
 *   answered   request NULL   --last report--> released
 */
struct pending {
        TAILQ_ENTRY(pending) entry;
        struct pending_head *list; /* that it is in */
        struct http_request *request;
        struct source_account *account;
        uint64_t bytes;   /* length of the body */
        uint64_t memory;  /* its share of the memory budget */
        int64_t began_ns; /* monotonic: when the request was complete */
        int64_t deadline_ms;
        int is_guarded;    /* the replay guard knows its signature */
        int may_be_stored; /* by Kafka or the spool */
        int is_refused;    /* Kafka works, and refuses it for good */
        int in_kafka;      /* Kafka has yet to report */
        int in_spool;      /* the spool has yet to report */
        int is_leaked;     /* librdkafka may still read the body */
        int is_of_doctor;  /* sent by `gatepost doctor` */
        void *body;        /* with a spool; else librdkafka owns it */
        struct spool_item item;
        uint8_t signature[SIGNATURE_SIZE];
        char delivery_id[DELIVERY_ID_MAX + 1];
};

TAILQ_HEAD(pending_head, pending);

/* The deliveries of one lane; those with a deadline are in the order of their deadlines. For one thread. */
struct pending_list {
        struct receiver_shared *shared;
        struct pending_head waiting;
        struct pending_head spooling;
        struct pending_head answered;
        struct spool_inbox inbox;
};

/* A byte is written to wake_fd when pending_serve() has something to do. */
void pending_init(struct pending_list *list, struct receiver_shared *shared, int wake_fd);

/**
 * pending_add(list, request, screened, is_replay, began_ns):
 * Let a request wait for its acknowledgement until ack_timeout after began_ns (monotonic), when it was
 * complete. The request's share of the memory budget moves to the pending delivery. Returns NULL when memory
 * fails.
 */
struct pending *pending_add(struct pending_list *list, struct http_request *request,
                            const struct screened *screened, int is_replay, int64_t began_ns);

/* Neither Kafka nor the spool accepted the record: release pending. The caller answers the request. */
void pending_cancel(struct pending_list *list, struct pending *pending, const char *reason);

/* Hand the delivery to the spool, which has room. Its item has the record. */
void pending_spool(struct pending_list *list, struct pending *pending);

/* Handle Kafka's report: answer the request if it still waits, or hand the delivery to the spool. */
void pending_report(struct pending_list *list, struct pending *pending,
                    const struct producer_outcome *outcome);

/* Handle the reports of the spool. */
void pending_serve(struct pending_list *list);

/*
 * The producer is gone: report all deliveries as failed, for this reason; they may nevertheless be in Kafka.
 */
void pending_fail_all(struct pending_list *list, const char *reason);

/*
 * Hand the deliveries whose deadline has passed to the spool, or answer them 503. Returns how many Kafka did
 * not acknowledge in time.
 */
size_t pending_expire(struct pending_list *list, int64_t now_ms);

/* Wait until the spool has reported on all deliveries. */
void pending_await_spool(struct pending_list *list);

/* The first deadline, or -1 when no delivery waits. */
int64_t pending_next_deadline(const struct pending_list *list);

#endif
