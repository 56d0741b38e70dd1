#ifndef KAFKA_BEGIN_DELAY_H
#define KAFKA_BEGIN_DELAY_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * When to begin a transaction after another. Kafka answers a commit before it has written the markers that end the transaction
 * in each partition. Partitions that are to be added to the next one until then it turns away (CONCURRENT_TRANSACTIONS), and
 * librdkafka asks again after 20 ms: it is faster to wait for as long as the markers take. They took 3 to 6 ms on one broker;
 * others take longer, so that it is learnt, between 8 and 20 ms, from how soon records could be produced.
 */
struct begin_delay {
        int wait_ms;
        int n_in_time;        /* transactions in a row that were not begun too early */
        int64_t committed_ms; /* monotonic; 0: nothing was */
        int was_awaited;      /* before the open transaction */
        /* Of the open transaction, set by librdkafka's threads. */
        _Atomic int64_t registered_ms; /* monotonic, when the first partitions were answered; 0: none were */
        atomic_int has_produced;
        atomic_int was_early;
};

void begin_delay_init(struct begin_delay *delay);

/* Block until those of the last commit are probably written, 20 ms after it at the latest. */
void begin_delay_wait(struct begin_delay *delay);

/* A transaction begins. */
void begin_delay_begun(struct begin_delay *delay);

/* It was committed. */
void begin_delay_committed(struct begin_delay *delay);

/* AddPartitionsToTxn, Produce was answered. By any thread. */
void begin_delay_partitions_added(struct begin_delay *delay);
void begin_delay_produced(struct begin_delay *delay);

#endif
