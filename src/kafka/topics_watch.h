#ifndef KAFKA_TOPICS_WATCH_H
#define KAFKA_TOPICS_WATCH_H

#include <stddef.h>

#include "config/config.h"
#include "kafka/topics.h"

/*
 * Watches the settings of the topics while the daemon runs: what was right at the start may be changed later.
 * For one thread.
 */
struct topics_watch;

struct topics_watch *topics_watch_new(const struct config *config);
void topics_watch_free(struct topics_watch *watch);

/**
 * topics_watch_look(watch, client, timeout_ms):
 * Compare the topics with the requirements, and log each problem that is new and each that is gone. The first
 * look only remembers the problems, which were logged at the start. Returns the number of topics with
 * problems; -1 when Kafka does not answer, and then nothing changes.
 */
int topics_watch_look(struct topics_watch *watch, rd_kafka_t *client, int timeout_ms);

#endif
