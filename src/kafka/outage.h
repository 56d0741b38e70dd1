#ifndef KAFKA_OUTAGE_H
#define KAFKA_OUTAGE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The present outage of Kafka, if there is one: since when, and the last known cause. It is logged when it
 * begins, whenever a cause of another kind becomes known, and when it ends. The only state that all Kafka
 * clients of the process share, as they share the log; any thread may use it.
 */

#define OUTAGE_CAUSE_SIZE 201

/* Something that requires Kafka has succeeded. */
void outage_end(void);

/*
 * Something that requires Kafka has failed, such as a request that timed out. The last suspicion since
 * something succeeded is the cause; without one, symptom is, until a cause is known.
 */
void outage_note(const char *symptom);

/* Kafka cannot be used, and this is the cause. */
void outage_explain(const char *cause);

/* A connection has failed, maybe to one of several brokers: outage_note() decides whether that is a cause. */
void outage_suspect(const char *cause);

/*
 * Copy the last cause, free of secrets, and the time since the epoch at which the outage began. Return 0
 * without an outage.
 */
int outage_read(char cause[OUTAGE_CAUSE_SIZE], int64_t *since_s);

/*
 * Copy why Kafka did not answer, free of secrets: the cause of the outage, or the last suspicion. Return 0 if
 * neither is known.
 */
int outage_find_cause(char cause[OUTAGE_CAUSE_SIZE]);

/* Log outages, as by default, or not: for a command that prints the cause itself. */
void outage_set_logging(int is_on);

/* Return the length of the beginning of a message of librdkafka that contains no secret. */
size_t outage_shown_len(const char *text);

/* Write what, and the cause of the outage if there is one: `WHAT: CAUSE`. Return text. */
const char *outage_describe(const char *what, char *text, size_t size);

#endif
