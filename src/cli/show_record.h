#ifndef CLI_SHOW_RECORD_H
#define CLI_SHOW_RECORD_H

#include <librdkafka/rdkafka.h>

/**
 * show_record_text(message, with_headers):
 * Write a record to stdout for a person: one line, or with its headers indented below. Control characters are escaped.
 */
void show_record_text(const rd_kafka_message_t *message, int with_headers);

/* Write it as one JSON object in a line. */
void show_record_json(const rd_kafka_message_t *message);

#endif
