#ifndef KAFKA_RESPONSES_H
#define KAFKA_RESPONSES_H

#include <stdatomic.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "kafka/begin_delay.h"

/*
 * What is seen of Kafka's answers to the requests of a transactional producer, which librdkafka handles by itself. Set by its
 * threads, read by any.
 */
struct responses {
        struct begin_delay delay;
        int is_embedded;        /* the broker is librdkafka's, which knows no fencing; it has one router */
        atomic_int is_tainted;  /* a request ended without an answer: Kafka may have it, or have it later */
        atomic_int is_unfenced; /* offsets were committed without the member's generation: before Kafka 2.5 */
        atomic_int is_any;      /* a request of the open transaction was answered */
};

void responses_init(struct responses *responses, int is_embedded);

/* To be called from an on_new interceptor, before the client has any connection. The answers outlive the client. */
rd_kafka_resp_err_t responses_watch(struct responses *responses, rd_kafka_t *client) MUST_CHECK;

#endif
