#include "metrics/recent.h"

#include <string.h>

#include "base/clock.h"

/* In a full list, this many events of a source and outcome are safe from events of other ones. */
#define SHARE 3

#define SLOT_S 600

void
recent_init(struct recent *recent)
{
        pthread_mutex_init(&recent->mutex, NULL);
        TAILQ_INIT(&recent->list);
        recent->n = 0;
}

/* Forget what is too old. A clock that was set back only makes that later. */
static void
turn_to(struct recent_hour *hour, int64_t now_s)
{
        int64_t slot = now_s / SLOT_S;

        if (slot - hour->slot >= RECENT_HOUR_SLOTS)
                *hour = (struct recent_hour){.slot = slot};
        while (hour->slot < slot)
                hour->counts[++hour->slot % RECENT_HOUR_SLOTS] = 0;
}

void
recent_hour_add(struct recent_hour *hour, int64_t now_s)
{
        turn_to(hour, now_s);
        hour->counts[hour->slot % RECENT_HOUR_SLOTS]++;
}

uint64_t
recent_hour_count(struct recent_hour *hour, int64_t now_s)
{
        uint64_t sum = 0;

        turn_to(hour, now_s);
        for (size_t i = 0; i < RECENT_HOUR_SLOTS; i++)
                sum += hour->counts[i];
        return sum;
}

typedef int relation(const struct recent_event *, const struct recent_event *);

/* Whether two events have the source and the outcome in common. */
static int
is_alike(const struct recent_event *one, const struct recent_event *other)
{
        return one->outcome == other->outcome && strcmp(one->source, other->source) == 0;
}

static int
is_alike_by_client(const struct recent_event *one, const struct recent_event *other)
{
        return is_alike(one, other) && memcmp(&one->client, &other->client, sizeof(one->client)) == 0;
}

static int
is_same(const struct recent_event *one, const struct recent_event *other)
{
        return is_alike(one, other) && one->offset == other->offset && one->partition == other->partition &&
               strcmp(one->detail, other->detail) == 0;
}

/* Return the oldest entry in this relation to an event, or NULL; and the number of such entries. */
static struct recent_entry *
find_oldest(struct recent *recent, relation *is_related, const struct recent_event *event, size_t *n)
{
        struct recent_entry *entry, *oldest = NULL;

        *n = 0;
        TAILQ_FOREACH(entry, &recent->list, entry)
        {
                if (!is_related(&entry->event, event))
                        continue;
                oldest = entry;
                (*n)++;
        }
        return oldest;
}

/* Return an event of the most frequent source and outcome, and of the client that caused most of those. */
static const struct recent_event *
find_crowd(struct recent *recent)
{
        const struct recent_event *crowd = NULL;
        size_t most = 0;
        struct recent_entry *entry;

        TAILQ_FOREACH_REVERSE(entry, &recent->list, recent_list, entry)
        {
                size_t n_alike, n_by_client;

                (void)find_oldest(recent, is_alike, &entry->event, &n_alike);
                (void)find_oldest(recent, is_alike_by_client, &entry->event, &n_by_client);
                if (n_alike * (RECENT_EVENTS + 1) + n_by_client <= most)
                        continue;
                most = n_alike * (RECENT_EVENTS + 1) + n_by_client;
                crowd = &entry->event;
        }
        return crowd;
}

/*
 * Choose the entry that a new event displaces. A stranger who tries one path after the other displaces his
 * own refusals, as long as he has any, and neither those of another client nor of another kind.
 */
static struct recent_entry *
choose_victim(struct recent *recent, const struct recent_event *event)
{
        const struct recent_event *crowd = event;
        struct recent_entry *victim, *oldest;
        size_t n;

        oldest = find_oldest(recent, is_alike, event, &n);
        if (n < SHARE)
                crowd = find_crowd(recent);
        victim = find_oldest(recent, is_alike_by_client, crowd, &n);
        return victim != NULL ? victim : oldest;
}

/* Return the entry for an event: that of the same event, a free one, or another one's. */
static struct recent_entry *
take_entry(struct recent *recent, const struct recent_event *event)
{
        size_t n;
        struct recent_entry *entry = find_oldest(recent, is_same, event, &n);

        if (entry == NULL && recent->n < RECENT_EVENTS) {
                entry = &recent->entries[recent->n++];
                *entry = (struct recent_entry){0};
                return entry;
        }
        if (entry == NULL) {
                entry = choose_victim(recent, event);
                entry->event.count = 0;
                entry->hour = (struct recent_hour){0};
        }
        TAILQ_REMOVE(&recent->list, entry, entry);
        return entry;
}

void
recent_note(struct recent *recent, const struct recent_event *event)
{
        struct recent_entry *entry;
        uint64_t count;

        pthread_mutex_lock(&recent->mutex);
        entry = take_entry(recent, event);
        count = entry->event.count;
        entry->event = *event;
        entry->event.time_s = clock_now_ms() / 1000;
        entry->event.count = count + 1;
        recent_hour_add(&entry->hour, entry->event.time_s);
        TAILQ_INSERT_HEAD(&recent->list, entry, entry);
        pthread_mutex_unlock(&recent->mutex);
}

size_t
recent_read(struct recent *recent, struct recent_event events[RECENT_EVENTS])
{
        int64_t now_s = clock_now_ms() / 1000;
        struct recent_entry *entry;
        size_t n = 0;

        pthread_mutex_lock(&recent->mutex);
        TAILQ_FOREACH(entry, &recent->list, entry)
        {
                events[n] = entry->event;
                events[n++].hour_count = recent_hour_count(&entry->hour, now_s);
        }
        pthread_mutex_unlock(&recent->mutex);
        return n;
}
