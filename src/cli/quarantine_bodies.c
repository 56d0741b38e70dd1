#include "cli/quarantine_bodies.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/kafka_access.h"

struct body_reading {
        const struct quarantine *quarantine;
        const struct quarantine_record *stub; /* the one whose delivery is read */
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

/* The place of a stub's delivery may have another record, after `deliveries` was recreated. */
static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        const struct body_reading *reading = arg;
        const struct quarantine_record *stub = reading->stub;

        (void)index;
        if (stub->key_len != message->key_len || memcmp(stub->key, message->key, stub->key_len) != 0)
                return RANGE_ENOUGH;
        return reading->on_body(message, stub, error, reading->arg);
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

/* Read each partition of quarantine from its first record that has a body to the last one. */
static int
read_quarantine(struct body_reading *reading)
{
        const struct quarantine *quarantine = reading->quarantine;
        struct range *ranges = mem_alloc(quarantine->n_ranges * sizeof(*ranges));
        int status;

        for (size_t p = 0; p < quarantine->n_ranges; p++) {
                ranges[p] = quarantine->ranges[p];
                ranges[p].to = ranges[p].from;
        }
        for (size_t i = 0; i < quarantine->n; i++) {
                const struct release_id *id = &quarantine->records[i].id;
                struct range *range = &ranges[id->partition];

                if (quarantine->records[i].is_stub)
                        continue;
                if (range->to == range->from)
                        range->from = id->offset;
                range->to = id->offset + 1;
        }
        status = read_ranges(reading, ranges, quarantine->n_ranges, on_record);
        free(ranges);
        return status;
}

/* Read the deliveries of stubs one by one: there are few. */
static int
read_deliveries(struct body_reading *reading, const struct range *deliveries, size_t n)
{
        int status = 0;

        for (size_t i = 0; i < reading->quarantine->n && status == 0; i++) {
                const struct quarantine_record *record = &reading->quarantine->records[i];
                const struct release_id *place = &record->delivery;
                struct range range;

                if (!record->is_stub || record->key_len == 0 || place->partition < 0 ||
                    (size_t)place->partition >= n)
                        continue;
                range = deliveries[place->partition];
                if (place->offset < range.from || place->offset >= range.to)
                        continue;
                range.from = place->offset;
                range.to = place->offset + 1;
                reading->stub = record;
                status = read_ranges(reading, &range, 1, on_delivery);
        }
        return status;
}

static int
read_stubs(struct body_reading *reading)
{
        const struct quarantine *quarantine = reading->quarantine;
        struct range *deliveries;
        size_t n;
        int status = kafka_access_ranges(quarantine->config, quarantine->query->bootstrap,
                                         quarantine->config->deliveries_topic, &deliveries, &n);

        if (status == 0)
                status = read_deliveries(reading, deliveries, n);
        free(deliveries);
        return status;
}

int
quarantine_bodies_read(const struct quarantine *quarantine, quarantine_body *on_body, void *arg)
{
        struct body_reading reading = {.quarantine = quarantine, .on_body = on_body, .arg = arg};
        size_t n_stubs = 0;
        int status = 0;

        for (size_t i = 0; i < quarantine->n; i++)
                n_stubs += quarantine->records[i].is_stub != 0;
        if (n_stubs < quarantine->n)
                status = read_quarantine(&reading);
        if (n_stubs > 0 && status == 0)
                status = read_stubs(&reading);
        return status;
}
