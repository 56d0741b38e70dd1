#ifndef CLI_QUARANTINE_LOOK_H
#define CLI_QUARANTINE_LOOK_H

#include <librdkafka/rdkafka.h>

#include "cli/quarantine.h"

/* The source, key and signature of a record of quarantine or of `deliveries`, which stay the message's. */
void quarantine_identify(struct quarantined *record, const rd_kafka_message_t *message);

/* By source and key, which identify a delivery, and by signature, which differs when it was sent again. */
int quarantine_compare_identities(const struct quarantined *one, const struct quarantined *other);

/* The steps of quarantine_look(). Each returns 0, or an exit status after saying why. */

/* Find out what of the topic is to be read: fills the ranges. */
int quarantine_bound(struct quarantine *quarantine, struct offsets *offsets) MUST_CHECK;

/* Read it: fills records, sorted, and returns. */
int quarantine_read(struct quarantine *quarantine) MUST_CHECK;

/* Find their releases in `deliveries`. */
int quarantine_find_releases(struct quarantine *quarantine, struct offsets *offsets) MUST_CHECK;

#endif
