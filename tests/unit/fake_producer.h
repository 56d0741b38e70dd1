#ifndef TESTS_FAKE_PRODUCER_H
#define TESTS_FAKE_PRODUCER_H

#include <stddef.h>

/*
 * Stands in for kafka/producer.h: wraps producer_new(), producer_append(), producer_serve(), producer_is_broken() and
 * producer_free() of the program. A report is due when the record was appended, and is delivered by producer_serve().
 */
enum fake_fate {
        FAKE_ACKNOWLEDGED,
        FAKE_FAILED,
        FAKE_REFUSED,   /* for good, by Kafka */
        FAKE_TOO_LARGE, /* for good, by producer_append() */
        FAKE_NO_ROOM,   /* producer_append() fails */
        FAKE_HELD       /* not reported before producer_free() */
};

#define FAKE_KEYS 64

/* By the number that is the key of a record: what becomes of it next, and so often it was appended and acknowledged. */
extern _Atomic(enum fake_fate) fake_fates[FAKE_KEYS];
extern _Atomic unsigned fake_appended[FAKE_KEYS], fake_acknowledged[FAKE_KEYS];

/* The most records that were outstanding at once. */
extern _Atomic unsigned fake_most_outstanding;

/* producer_free() abandons records instead of reporting them. */
extern _Atomic int fake_forgets;

/* Begin, with all records acknowledged; end. */
void fake_producer_start(void);
void fake_producer_stop(void);

#endif
