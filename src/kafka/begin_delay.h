#ifndef KAFKA_BEGIN_DELAY_H
#define KAFKA_BEGIN_DELAY_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * How long to wait between a commit and the next transaction. Kafka answers a commit before it has written
 * the markers that end the transaction in each partition. Until then it refuses to add partitions to the next
 * transaction (CONCURRENT_TRANSACTIONS), and librdkafka retries after 20 ms: it is faster to wait until the
 * markers are written. That took 3 to 6 ms on one broker; others take longer, so the delay adapts, between 4
 * and 20 ms, to how soon records could be produced.
 */
struct begin_delay {
        int wait_ms;
        int n_in_time;        /* consecutive transactions that did not begin too early */
        int64_t committed_ms; /* monotonic; 0: no commit yet */
        int was_awaited;      /* the open transaction began after a wait */
        /* About the open transaction, set by librdkafka's threads. */
        _Atomic int64_t registered_ms; /* monotonic: the first answer to AddPartitionsToTxn; 0: none yet */
        atomic_int has_produced;
        atomic_int was_early;
};

void begin_delay_init(struct begin_delay *delay);

/* Block until the markers of the last commit are probably written, at most until 20 ms after it. */
void begin_delay_wait(struct begin_delay *delay);

/* A transaction has begun. */
void begin_delay_begun(struct begin_delay *delay);

/* The transaction was committed. */
void begin_delay_committed(struct begin_delay *delay);

/* AddPartitionsToTxn or Produce was answered. From any thread. */
void begin_delay_partitions_added(struct begin_delay *delay);
void begin_delay_produced(struct begin_delay *delay);

#endif
