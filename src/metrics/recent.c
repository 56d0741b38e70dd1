#include "metrics/recent.h"

#include <string.h>

#include "base/clock.h"

void
recent_init(struct recent *recent)
{
        *recent = (struct recent){0};
        pthread_mutex_init(&recent->mutex, NULL);
}

/* Return whether an event only repeats another one. A scan of paths of no source repeats, too. */
static int
is_same(const struct recent_event *one, const struct recent_event *other)
{
        return one->outcome == other->outcome && strcmp(one->source, other->source) == 0 &&
               one->offset == other->offset && one->partition == other->partition &&
               (*one->source == '\0' || strcmp(one->detail, other->detail) == 0);
}

void
recent_note(struct recent *recent, const struct recent_event *event)
{
        struct recent_event *newest;
        uint64_t count = 0;

        pthread_mutex_lock(&recent->mutex);
        newest = &recent->ring[(recent->n + RECENT_EVENTS - 1) % RECENT_EVENTS];
        if (recent->n > 0 && is_same(newest, event))
                count = newest->count;
        else
                newest = &recent->ring[recent->n++ % RECENT_EVENTS];
        *newest = *event;
        newest->time_s = clock_now_ms() / 1000;
        newest->count = count + 1;
        pthread_mutex_unlock(&recent->mutex);
}

size_t
recent_read(const struct recent *recent, struct recent_event events[RECENT_EVENTS])
{
        pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&recent->mutex;
        size_t n;

        pthread_mutex_lock(mutex);
        n = recent->n < RECENT_EVENTS ? recent->n : RECENT_EVENTS;
        for (size_t i = 0; i < n; i++)
                events[i] = recent->ring[(recent->n - 1 - i) % RECENT_EVENTS];
        pthread_mutex_unlock(mutex);
        return n;
}
