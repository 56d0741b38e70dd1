#ifndef KAFKA_ENDING_H
#define KAFKA_ENDING_H

#include <librdkafka/rdkafka.h>

/**
 * ending_purge(client):
 * Give up what a producer has not sent, or has no answer to, and wait up to a second for the reports on it. librdkafka's
 * threads, which purge and report, wait in getaddrinfo() for as long as name servers do not answer. Returns how many reports
 * are missing: the threads that owe them do not end either.
 */
int ending_purge(rd_kafka_t *client);

/**
 * ending_destroy(client):
 * Destroy a client. librdkafka 2.0.2 waits for ever for the end of its threads when a topic was deleted, or denied to the
 * account, while a consumer read it: a client that has not ended after 5 s is leaked, and the log says so. Returns 0, or -1
 * when it was leaked: then its callbacks may still be called.
 */
int ending_destroy(rd_kafka_t *client);

/* The same with a patience of so many seconds; 0 does not wait at all. */
int ending_destroy_within(rd_kafka_t *client, int seconds);

#endif
