#ifndef CLI_QUARANTINE_BODIES_H
#define CLI_QUARANTINE_BODIES_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "cli/quarantine.h"

/* Process the body and the headers of a record: its own or, of a stub, those of its delivery. */
typedef enum range_answer quarantine_body(const rd_kafka_message_t *message,
                                          const struct quarantine_record *record, struct error *error,
                                          void *arg);

/**
 * quarantine_bodies_read(quarantine, on_body, arg):
 * Read the bodies that are still in Kafka of all loaded records. Returns 0, or an exit status after printing
 * the reason.
 */
int quarantine_bodies_read(const struct quarantine *quarantine, quarantine_body *on_body,
                           void *arg) MUST_CHECK;

#endif
