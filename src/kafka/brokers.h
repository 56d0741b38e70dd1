#ifndef KAFKA_BROKERS_H
#define KAFKA_BROKERS_H

#include <stddef.h>

#include "base/compiler.h"

#define BROKERS_MAX 64
#define BROKERS_NAME_SIZE 128

/* A broker as a client sees it. */
struct broker {
        char name[BROKERS_NAME_SIZE]; /* host:port/id */
        int is_up;                    /* connected, and let in */
};

/* The brokers that a client knows, at one moment; of a larger cluster the first BROKERS_MAX. A plain value. */
struct brokers {
        struct broker items[BROKERS_MAX];
        size_t n;
};

/**
 * brokers_read(brokers, statistics, len):
 * Read librdkafka's statistics, a JSON text: the brokers of the cluster, and those of bootstrap.servers that cannot be
 * reached (the others are of the cluster, too, by this name or another). Returns 0; or -1, with none, when memory fails or
 * that is no such text.
 */
int brokers_read(struct brokers *brokers, const char *statistics, size_t len) MUST_CHECK;

#endif
