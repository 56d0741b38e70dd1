#ifndef KAFKA_ENDING_H
#define KAFKA_ENDING_H

#include <librdkafka/rdkafka.h>

/**
 * ending_destroy(client):
 * Destroy a consumer. librdkafka 2.0.2 waits for ever for the end of its threads when a topic was deleted, or denied to the
 * account, while the consumer read it: one that has not ended after 5 s is left behind with what it holds, and the log
 * says so.
 */
void ending_destroy(rd_kafka_t *client);

#endif
