#ifndef CLI_SHOW_RECORD_H
#define CLI_SHOW_RECORD_H

#include <librdkafka/rdkafka.h>

/* Write a record to stdout: one line for a person, with its headers indented below, or one JSON object in a line. */
void show_record_text(const rd_kafka_message_t *message);
void show_record_json(const rd_kafka_message_t *message);

#endif
