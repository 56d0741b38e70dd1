#ifndef KAFKA_BROKERS_H
#define KAFKA_BROKERS_H

#include <stddef.h>
#include <stdint.h>

#define BROKERS_MAX 64
#define BROKERS_NAME_SIZE 128

/* A broker as a client sees it. */
struct broker {
        char name[BROKERS_NAME_SIZE]; /* host:port/id */
        int is_up;                    /* connected, and let in */
        uint64_t rtt_us;              /* of late: from a request to its answer, on average; 0: not known */
};

/* The brokers that a client knows, at one moment; of a larger cluster the first BROKERS_MAX. A plain value. */
struct brokers {
        struct broker items[BROKERS_MAX];
        size_t n;
};

/* Where now does not know a broker's rtt, take over what before knew. */
void brokers_keep_rtt(struct brokers *now, const struct brokers *before);

#endif
