#ifndef KAFKA_RESPONSES_H
#define KAFKA_RESPONSES_H

#include <stdatomic.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "kafka/begin_delay.h"

/*
 * Observations of Kafka's responses to a transactional producer, which librdkafka otherwise handles by
 * itself. Set by its threads, read by any.
 */
struct responses {
        struct begin_delay delay;
        int is_embedded; /* the broker is librdkafka's mock, which has no fencing; there is only one router */
        atomic_int
            is_tainted; /* a request ended without a response: Kafka may have received it, or may still */
        atomic_int is_unfenced; /* offsets were committed without the member's generation: Kafka before 2.5 */
        atomic_int is_any;      /* a request of the open transaction was answered */
};

void responses_init(struct responses *responses, int is_embedded);

/*
 * Call this from an on_new interceptor, before the client has any connection. responses outlives the client.
 */
rd_kafka_resp_err_t responses_watch(struct responses *responses, rd_kafka_t *client) MUST_CHECK;

#endif
