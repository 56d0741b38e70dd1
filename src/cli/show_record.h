#ifndef CLI_SHOW_RECORD_H
#define CLI_SHOW_RECORD_H

#include <stddef.h>

#include <librdkafka/rdkafka.h>

#include "base/json.h"

/* Records of Kafka on stdout, for people and as JSON. Control characters in text never reach the terminal. */

/* Print a record as one line, with its headers on indented lines below if asked for. */
void show_record_text(const rd_kafka_message_t *message, int with_headers);

/* Print the headers of a record, each on an indented line. */
void show_record_headers(const rd_kafka_message_t *message);

/**
 * show_record_body(body, len):
 * Print a body: as it is, ending in a newline, when it is UTF-8 without control characters other than tab, CR
 * and LF; otherwise in one line, with other bytes as \xNN.
 */
void show_record_body(const char *body, size_t len);

/* Print a record as a JSON object on one line. */
void show_record_json(const rd_kafka_message_t *message);

/* Add the members `headers`, those of a record, and `value` to an open JSON object. */
void show_record_members(struct json_writer *json, const rd_kafka_message_t *message);

#endif
