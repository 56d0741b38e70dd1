#include <stdlib.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/progress.h"
#include "cli/quarantine_look.h"
#include "kafka/message.h"

/* `deliveries`, as far as releases may stand in it. */
struct search {
        struct quarantine *quarantine;
        struct range *ranges; /* of its partitions, the index is the number */
        size_t n_ranges;
        struct progress progress;
};

/*
 * From where on a record's releases may stand in the partition that its key belongs to: after itself. That all of that is
 * still there, and it is the log that the record was in, decides whether it is certain that there was none.
 */
static int64_t
begin_of(const struct search *search, struct quarantined *record, const struct range *range)
{
        const struct release_id *place = &record->delivery;
        int is_origin = place->partition == range->partition;

        record->state = QUARANTINE_UNSURE;
        if (is_origin && place->offset >= range->from && place->offset < range->to) {
                record->state = QUARANTINE_WAITING;
                return place->offset + 1;
        }
        if (range->from == 0 && !is_origin && (size_t)place->partition < search->n_ranges)
                record->state = QUARANTINE_WAITING; /* the number of partitions has changed */
        return range->from;
}

/* Leave out of the ranges what need not be read. */
static void
narrow(struct search *search)
{
        struct quarantine *quarantine = search->quarantine;
        int64_t *begins = mem_alloc(search->n_ranges * sizeof(*begins));

        for (size_t p = 0; p < search->n_ranges; p++)
                begins[p] = search->ranges[p].to;
        for (size_t i = 0; i < quarantine->n; i++) {
                struct quarantined *record = &quarantine->records[i];
                int32_t p = record->key_len == 0
                                ? 0 /* it has no identity, and cannot be released */
                                : message_partition((struct span){record->key, record->key_len},
                                                    (int32_t)search->n_ranges);
                int64_t begin = begin_of(search, record, &search->ranges[p]);

                if (record->key_len == 0)
                        record->state = QUARANTINE_WAITING;
                else if (begin < begins[p])
                        begins[p] = begin;
        }
        for (size_t p = 0; p < search->n_ranges; p++)
                search->ranges[p].from = begins[p];
        free(begins);
}

static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct search *search = arg;
        struct release_id id;
        struct quarantined *record;

        (void)index;
        (void)error;
        progress_step(&search->progress);
        if (release_id_parse(message_header(message, RECORD_RELEASED), &id) != 0)
                return RANGE_GO_ON;
        record = quarantine_find(search->quarantine, &id);
        if (record != NULL && record->release.partition < 0)
                record->release = (struct release_id){message->partition, message->offset};
        return RANGE_GO_ON;
}

static int
read_deliveries(struct search *search)
{
        const struct quarantine *quarantine = search->quarantine;
        enum range_result result;
        struct error error;

        progress_begin(&search->progress, "looking for releases in deliveries",
                       progress_count(search->ranges, search->n_ranges));
        result = range_read(quarantine->config, quarantine->wish->bootstrap, search->ranges, search->n_ranges,
                            on_delivery, search, &error);
        progress_end(&search->progress);
        return result == RANGE_DONE ? 0 : quarantine_failed(quarantine->wish, result, &error);
}

int
quarantine_find_releases(struct quarantine *quarantine, struct offsets *offsets)
{
        struct search search = {.quarantine = quarantine};
        struct error error;
        int status;

        if (quarantine->n == 0)
                return 0;
        if (offsets_stable_ranges(offsets, quarantine->config->deliveries_topic, &search.ranges,
                                  &search.n_ranges, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0) {
                status = quarantine_refuse(quarantine->wish,
                                           offsets_is_denied(offsets) ? EX_NOPERM : EX_UNAVAILABLE, "%s",
                                           error.text);
        } else {
                narrow(&search);
                status = read_deliveries(&search);
        }
        for (size_t i = 0; i < quarantine->n && status == 0; i++) {
                struct quarantined *record = &quarantine->records[i];

                if (record->release.partition >= 0 || record->came_back.partition >= 0)
                        record->state = QUARANTINE_RELEASED;
        }
        free(search.ranges);
        return status;
}
