#ifndef CLI_SHOW_RECORD_H
#define CLI_SHOW_RECORD_H

#include <librdkafka/rdkafka.h>
#include <yajl/yajl_gen.h>

/**
 * show_record_text(message, with_headers):
 * Write a record to stdout for a person: one line, or with its headers indented below. Control characters are escaped.
 */
void show_record_text(const rd_kafka_message_t *message, int with_headers);

/* Write a record's headers to stdout, each on an indented line. */
void show_record_headers(const rd_kafka_message_t *message);

/* Add a record's headers and value to an object that is open. */
void show_record_content(yajl_gen json, const rd_kafka_message_t *message);

/* Write it as one JSON object in a line. */
void show_record_json(const rd_kafka_message_t *message);

#endif
