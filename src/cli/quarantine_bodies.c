#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "cli/quarantine.h"
#include "kafka/offsets.h"

/* Reads the bodies of records of quarantine, from quarantine or, of stubs, from `deliveries`. */

struct body_reading {
        const struct quarantine_record **sought; /* sorted by the places of their bodies */
        size_t n;
        quarantine_body *on_body;
        void *arg;
};

static const struct release_id *
place_of(const struct quarantine_record *record)
{
        return record->is_stub ? &record->delivery : &record->id;
}

static int
compare_places(const void *a, const void *b)
{
        const struct quarantine_record *one = *(const struct quarantine_record *const *)a,
                                       *other = *(const struct quarantine_record *const *)b;

        return release_id_compare(place_of(one), place_of(other));
}

/* Return the index of the first record whose body is at a place or after it. */
static size_t
find_first(const struct body_reading *reading, const struct release_id *place)
{
        size_t low = 0, high = reading->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (release_id_compare(place_of(reading->sought[middle]), place) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* The place of a stub's delivery may have another record, after `deliveries` was recreated. */
static int
is_same_delivery(const struct quarantine_record *record, const rd_kafka_message_t *message)
{
        return record->key_len == message->key_len &&
               (record->key_len == 0 || memcmp(record->key, message->key, record->key_len) == 0);
}

static enum range_answer
on_message(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        const struct body_reading *reading = arg;
        struct release_id place = {message->partition, message->offset};
        enum range_answer answer = RANGE_GO_ON;

        (void)index;
        for (size_t i = find_first(reading, &place);
             i < reading->n && answer == RANGE_GO_ON &&
             release_id_compare(place_of(reading->sought[i]), &place) == 0;
             i++) {
                if (is_same_delivery(reading->sought[i], message))
                        answer = reading->on_body(message, reading->sought[i], error, reading->arg);
        }
        return answer;
}

/*
 * Find for each partition of the topic the range from the first sought body to the last, as far as it is
 * still there. Returns 0, or an exit status after printing the reason.
 */
static int
find_ranges(const struct body_reading *reading, const struct quarantine *quarantine, const char *topic,
            struct range **ranges, size_t *n)
{
        struct error error;
        struct offsets *offsets = offsets_new(quarantine->config, quarantine->query->bootstrap, &error);
        size_t i = 0;
        int status = 0;

        *ranges = NULL;
        *n = 0;
        if (offsets == NULL)
                return command_fail(EX_CONFIG, "%s", error.text);
        if (offsets_stable_ranges(offsets, topic, ranges, n, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                status = kafka_access_fail(offsets_is_denied(offsets), error.text);
        for (size_t p = 0; p < *n; p++) {
                struct range *range = &(*ranges)[p];
                int64_t first = INT64_MAX, last = -1;

                for (; i < reading->n && (size_t)place_of(reading->sought[i])->partition == p; i++) {
                        last = place_of(reading->sought[i])->offset;
                        first = first == INT64_MAX ? last : first;
                }
                range->from = first > range->from ? first : range->from;
                range->to = last + 1 < range->to ? last + 1 : range->to;
        }
        offsets_free(offsets);
        return status;
}

/* Move the records that are stubs, or are not, and name the place of their bodies, to reading->sought. */
static void
select_kind(struct body_reading *reading, const struct quarantine_record **records, size_t n, int are_stubs)
{
        reading->n = 0;
        for (size_t i = 0; i < n; i++) {
                if (!records[i]->is_stub == !are_stubs && place_of(records[i])->partition >= 0)
                        reading->sought[reading->n++] = records[i];
        }
        if (reading->n > 0)
                qsort(reading->sought, reading->n, sizeof(*reading->sought), compare_places);
}

int
quarantine_read_bodies(const struct quarantine *quarantine, const struct quarantine_record **records,
                       size_t n, quarantine_body *on_body, void *arg)
{
        const struct config *config = quarantine->config;
        struct body_reading reading = {mem_alloc((n + 1) * sizeof(*reading.sought)), 0, on_body, arg};
        int status = 0;

        for (int are_stubs = 0; are_stubs < 2 && status == 0; are_stubs++) {
                const char *topic = are_stubs ? config->deliveries_topic : config->quarantine_topic;
                struct range *ranges;
                struct error error;
                size_t n_ranges;

                select_kind(&reading, records, n, are_stubs);
                if (reading.n == 0)
                        continue;
                status = find_ranges(&reading, quarantine, topic, &ranges, &n_ranges);
                if (status == 0)
                        status = kafka_access_status(range_read(config, quarantine->query->bootstrap, ranges,
                                                                n_ranges, on_message, &reading, &error),
                                                     &error);
                free(ranges);
        }
        free(reading.sought);
        return status;
}
