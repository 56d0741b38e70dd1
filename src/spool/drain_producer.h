#ifndef SPOOL_DRAIN_PRODUCER_H
#define SPOOL_DRAIN_PRODUCER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/log_flood.h"
#include "config/config.h"
#include "kafka/producer.h"
#include "spool/segment_drain.h"

/*
 * The producer of a drain: opened when it is needed; replaced when it is broken, appends nothing, or has to
 * batch in another way. Knows whether Kafka acknowledges records. For one thread, but for
 * drain_producer_is_trying() and drain_producer_failure().
 */
struct drain_producer {
        const struct config *config;
        const char *bootstrap;
        int wake_fd;
        producer_report *report;
        void *arg;
        struct producer *producer; /* NULL: closed */
        enum producer_batching batching;
        unsigned patience;            /* of the next producer */
        uint64_t room;                /* bytes of segments that may be in flight */
        int is_proven;                /* Kafka has acknowledged a record, and none has failed since */
        atomic_int_fast64_t tried_ms; /* monotonic: when records were last to be appended, or reported */
        pthread_mutex_t mutex;        /* protects failure */
        struct error failure;
        struct log_flood failed;
};

/* Begin, closed. The arguments are those of producer_new(), and outlive it. */
void drain_producer_init(struct drain_producer *appends, const struct config *config, const char *bootstrap,
                         int wake_fd, producer_report *report, void *arg);

/* Close it, and log what has not been logged yet. */
void drain_producer_end(struct drain_producer *appends);

/* Whether it is open and not broken. */
int drain_producer_works(const struct drain_producer *appends);

/* Open it. Return 0, or -1 after noting the reason. */
int drain_producer_open(struct drain_producer *appends, enum producer_batching batching) MUST_CHECK;

/* Close it: records in flight are reported as failed, or never (producer_free()). */
void drain_producer_close(struct drain_producer *appends);

/*
 * Most records of a pass have failed. Have the next producer wait twice as long for acknowledgements, and
 * send half as much at a time: if Kafka takes longer than ack_timeout, or the link to it cannot carry as
 * much in this time, the same records would be appended again without end.
 */
void drain_producer_be_careful(struct drain_producer *appends);

/* Nothing is left to append: the next records are the first ones again. */
void drain_producer_forget_failures(struct drain_producer *appends);

/*
 * Note what became of a record of this size, after this time: with what is acknowledged soon, the room grows
 * again. Or note why one could not be appended.
 */
void drain_producer_note(struct drain_producer *appends, const struct producer_outcome *outcome,
                         uint64_t bytes, int64_t took_ms);
void drain_producer_note_failure(struct drain_producer *appends, const char *reason);

/* Return what may be in flight now, beside other deliveries or alone. */
struct segment_drain_window drain_producer_window(struct drain_producer *appends, int has_traffic) MUST_CHECK;

/* Whether records are appended, or were a moment ago. Any thread. */
int drain_producer_is_trying(const struct drain_producer *appends);

/* Set the reason for which something is not in Kafka, although no append has failed. */
void drain_producer_explain(struct drain_producer *appends, const char *reason);

/* Copy the last reason; "" if there was none. Any thread. */
void drain_producer_failure(struct drain_producer *appends, struct error *error);

#endif
