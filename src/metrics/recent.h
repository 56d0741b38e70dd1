#ifndef METRICS_RECENT_H
#define METRICS_RECENT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/address.h"

/*
 * The last events of a kind that an operator wants to see in /status: refused requests, quarantined records.
 * An event that repeats is kept once, with a count. The memory is constant, and whoever causes many different
 * events displaces mostly events of the same source and outcome. A plain value; any thread may use it.
 */

#define RECENT_EVENTS 20
#define RECENT_DETAIL_SIZE 256
#define RECENT_NAME_SIZE 65

/* How often something has happened within an hour, and up to ten minutes before it. */
#define RECENT_HOUR_SLOTS 7

struct recent_hour {
        uint64_t counts[RECENT_HOUR_SLOTS]; /* a ring, by slots of ten minutes */
        int64_t slot;                       /* the newest, since the epoch */
};

void recent_hour_add(struct recent_hour *hour, int64_t now_s);
uint64_t recent_hour_count(struct recent_hour *hour, int64_t now_s);

struct recent_event {
        const char *outcome; /* or reason; a constant: equal outcomes are the same pointer */
        char source[RECENT_NAME_SIZE];
        char detail[RECENT_DETAIL_SIZE]; /* not escaped */
        int64_t time_s;                  /* of the last time */
        uint64_t count;
        uint64_t hour_count; /* within an hour */
        /* Of the last refusal; zero for a record. */
        int status; /* also zero for a connection that was closed before a request */
        struct address client;
        char request_id[RECENT_NAME_SIZE];
        /* Of the record; zero for a refusal. */
        char delivery_id[RECENT_NAME_SIZE];
        int32_t partition;
        int64_t offset;
};

struct recent_entry {
        TAILQ_ENTRY(recent_entry) entry;
        struct recent_event event;
        struct recent_hour hour;
};

struct recent {
        pthread_mutex_t mutex;
        TAILQ_HEAD(recent_list, recent_entry) list; /* the newest first */
        size_t n;
        struct recent_entry entries[RECENT_EVENTS];
};

void recent_init(struct recent *recent);

/* Note an event, now. Its time and counts are ignored. */
void recent_note(struct recent *recent, const struct recent_event *event);

/* Copy the events, the newest first. Return their number. */
size_t recent_read(struct recent *recent, struct recent_event events[RECENT_EVENTS]);

#endif
