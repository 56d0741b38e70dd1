#include "cli/quarantine_bodies.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/kafka_access.h"

struct body_reading {
        const struct quarantine *quarantine;
        const struct quarantine_record **stubs; /* sorted by the places of their deliveries */
        size_t n_stubs;
        quarantine_body *on_body;
        void *arg;
};

static int
compare_id(const void *id, const void *record)
{
        return release_id_compare(id, &((const struct quarantine_record *)record)->id);
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        const struct body_reading *reading = arg;
        const struct quarantine *quarantine = reading->quarantine;
        const struct release_id id = {message->partition, message->offset};
        const struct quarantine_record *record =
            bsearch(&id, quarantine->records, quarantine->n, sizeof(*record), compare_id);

        (void)index;
        if (record == NULL || record->is_stub)
                return RANGE_GO_ON;
        return reading->on_body(message, record, error, reading->arg);
}

static int
compare_deliveries(const void *a, const void *b)
{
        const struct quarantine_record *one = *(const struct quarantine_record *const *)a,
                                       *other = *(const struct quarantine_record *const *)b;

        return release_id_compare(&one->delivery, &other->delivery);
}

/* The place of a stub's delivery may have another record, after `deliveries` was recreated. */
static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        const struct body_reading *reading = arg;
        const struct quarantine_record sought = {.delivery = {message->partition, message->offset}};
        const struct quarantine_record *key = &sought, *const * found;

        (void)index;
        found = bsearch(&key, reading->stubs, reading->n_stubs, sizeof(*reading->stubs), compare_deliveries);
        if (found == NULL || (*found)->key_len != message->key_len ||
            memcmp((*found)->key, message->key, message->key_len) != 0)
                return RANGE_GO_ON;
        return reading->on_body(message, *found, error, reading->arg);
}

static int
read_ranges(struct body_reading *reading, struct range *ranges, size_t n, range_record *on_message)
{
        const struct quarantine *quarantine = reading->quarantine;
        struct error error;

        return kafka_access_status(range_read(quarantine->config, quarantine->query->bootstrap, ranges, n,
                                              on_message, reading, &error),
                                   &error);
}

/* Return empty ranges at the beginning of others, for include(). */
static struct range *
copy_empty(const struct range *all, size_t n)
{
        struct range *ranges = mem_alloc((n + 1) * sizeof(*ranges));

        for (size_t p = 0; p < n; p++) {
                ranges[p] = all[p];
                ranges[p].to = ranges[p].from;
        }
        return ranges;
}

/* Make a range reach to a place, if that is in the whole range. Places come in order. */
static void
include(struct range *range, const struct range *whole, int64_t offset)
{
        if (offset < whole->from || offset >= whole->to)
                return;
        if (range->to == range->from)
                range->from = offset;
        range->to = offset + 1;
}

static int
read_quarantine(struct body_reading *reading)
{
        const struct quarantine *quarantine = reading->quarantine;
        struct range *ranges = copy_empty(quarantine->ranges, quarantine->n_ranges);
        int status;

        for (size_t i = 0; i < quarantine->n; i++) {
                const struct release_id *id = &quarantine->records[i].id;

                if (!quarantine->records[i].is_stub)
                        include(&ranges[id->partition], &quarantine->ranges[id->partition], id->offset);
        }
        status = read_ranges(reading, ranges, quarantine->n_ranges, on_record);
        free(ranges);
        return status;
}

static int
read_deliveries(struct body_reading *reading)
{
        const struct quarantine *quarantine = reading->quarantine;
        struct range *all, *ranges;
        size_t n;
        int status = kafka_access_ranges(quarantine->config, quarantine->query->bootstrap,
                                         quarantine->config->deliveries_topic, &all, &n);

        if (status != 0)
                return status;
        ranges = copy_empty(all, n);
        for (size_t i = 0; i < reading->n_stubs; i++) {
                const struct release_id *place = &reading->stubs[i]->delivery;

                if ((size_t)place->partition < n)
                        include(&ranges[place->partition], &all[place->partition], place->offset);
        }
        status = read_ranges(reading, ranges, n, on_delivery);
        free(ranges);
        free(all);
        return status;
}

/* List the stubs that name their deliveries. */
static void
list_stubs(struct body_reading *reading)
{
        const struct quarantine *quarantine = reading->quarantine;

        reading->stubs = mem_alloc((quarantine->n + 1) * sizeof(*reading->stubs));
        for (size_t i = 0; i < quarantine->n; i++) {
                const struct quarantine_record *record = &quarantine->records[i];

                if (record->is_stub && record->key_len > 0 && record->delivery.partition >= 0)
                        reading->stubs[reading->n_stubs++] = record;
        }
        if (reading->n_stubs > 0)
                qsort(reading->stubs, reading->n_stubs, sizeof(*reading->stubs), compare_deliveries);
}

int
quarantine_bodies_read(const struct quarantine *quarantine, quarantine_body *on_body, void *arg)
{
        struct body_reading reading = {.quarantine = quarantine, .on_body = on_body, .arg = arg};
        int status = read_quarantine(&reading);

        list_stubs(&reading);
        if (reading.n_stubs > 0 && status == 0)
                status = read_deliveries(&reading);
        free(reading.stubs);
        return status;
}
