#ifndef METRICS_RECENT_H
#define METRICS_RECENT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

/*
 * The last events of a kind that an operator wants to see in /status: refused requests, quarantined records.
 * An event that only repeats the one before is counted there. A plain value; any thread may use it.
 */

#define RECENT_EVENTS 20
#define RECENT_DETAIL_SIZE 256
#define RECENT_NAME_SIZE 65

struct recent_event {
        const char *outcome; /* or reason; a constant: equal outcomes are the same pointer */
        char source[RECENT_NAME_SIZE];
        char detail[RECENT_DETAIL_SIZE]; /* not escaped */
        int64_t time_s;                  /* of the last time */
        uint64_t count;
        /* Of the last refusal; zero for a record. */
        int status; /* also zero for a connection that was closed before a request */
        struct address client;
        char request_id[RECENT_NAME_SIZE];
        /* Of the record; zero for a refusal. */
        char delivery_id[RECENT_NAME_SIZE];
        int32_t partition;
        int64_t offset;
};

struct recent {
        pthread_mutex_t mutex;
        size_t n; /* events that began an entry of the ring */
        struct recent_event ring[RECENT_EVENTS];
};

void recent_init(struct recent *recent);

/* Note an event, now. Its time and count are ignored. */
void recent_note(struct recent *recent, const struct recent_event *event);

/* Copy the events, the newest first. Return their number. */
size_t recent_read(const struct recent *recent, struct recent_event events[RECENT_EVENTS]);

#endif
