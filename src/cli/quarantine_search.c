#include "cli/quarantine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "cli/terminal.h"
#include "kafka/message.h"

/* Largest difference between the clocks of routers, which stamp quarantine, and of brokers. */
#define CLOCK_SKEW_MS (60 * 60 * INT64_C(1000))

/*
 * The search for releases in `deliveries`.
 *
 * A release is appended after the delivery that was quarantined, to the partition of its key. So there is
 * certainly no release only if the delivery is still at its place, which shows that the topic was not
 * recreated, and no record after it was deleted. If partitions were added between quarantine and release, the
 * key may have belonged to other partitions; these are searched from the time of quarantine on.
 */
struct quarantine_search {
        struct quarantine *quarantine;
        struct range *ranges; /* of the topic, indexed by partition */
        size_t n_ranges;
        int64_t *kept_ms;                       /* of each partition: range_kept_since() */
        struct quarantine_record **by_place;    /* the records, sorted by the places of their deliveries */
        struct quarantine_record **by_identity; /* the records, sorted by source, key and signature */
        struct terminal_progress progress;
};

static int
compare_places(const struct quarantine_record *one, const struct quarantine_record *other)
{
        return release_id_compare(&one->delivery, &other->delivery);
}

static int
sort_places(const void *a, const void *b)
{
        const struct quarantine_record *one = *(struct quarantine_record *const *)a,
                                       *other = *(struct quarantine_record *const *)b;

        return compare_places(one, other);
}

static int
sort_identities(const void *a, const void *b)
{
        const struct quarantine_record *one = *(struct quarantine_record *const *)a,
                                       *other = *(struct quarantine_record *const *)b;
        int order = quarantine_compare_identities(one, other);

        return order != 0 ? order : release_id_compare(&one->id, &other->id);
}

/* Return the records in another order; the caller frees the array. */
static struct quarantine_record **
sort_records(const struct quarantine *quarantine, int (*compare)(const void *a, const void *b))
{
        struct quarantine_record **sorted = mem_alloc(quarantine->n * sizeof(struct quarantine_record *));

        for (size_t i = 0; i < quarantine->n; i++)
                sorted[i] = &quarantine->records[i];
        qsort(sorted, quarantine->n, sizeof(struct quarantine_record *), compare);
        return sorted;
}

/* Return the index of the first record that is not less than the sought one. */
static size_t
find_first(struct quarantine_record **sorted, size_t n, const struct quarantine_record *sought,
           int (*compare)(const struct quarantine_record *one, const struct quarantine_record *other))
{
        size_t low = 0, high = n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare(sorted[middle], sought) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Return the doubt that holds unless the delivery is read later. */
static enum quarantine_doubt
first_doubt(const struct quarantine_search *search, const struct quarantine_record *record)
{
        const struct release_id *place = &record->delivery;

        if (place->partition < 0)
                return QUARANTINE_DOUBT_NO_PLACE;
        if ((size_t)place->partition >= search->n_ranges ||
            place->offset >= search->ranges[place->partition].to)
                return QUARANTINE_DOUBT_PAST_END;
        return place->offset < search->ranges[place->partition].from ? QUARANTINE_DOUBT_DELETED
                                                                     : QUARANTINE_DOUBT_NO_RECORD;
}

/*
 * Lower times[p] to the time from which a release of the record may be in partition p, for the partitions
 * that its key had or has, other than its delivery's. They follow from the numbers of partitions that are
 * possible: from the smallest one that explains the place of the delivery to today's.
 */
static void
note_times(const struct quarantine_search *search, struct quarantine_record *record, int64_t *times)
{
        struct span key = {record->key, record->key_len};
        int32_t n = (int32_t)search->n_ranges, origin = record->delivery.partition, least = 1;
        int has_grown = message_partition(key, n) != origin,
            is_there = record->doubt == QUARANTINE_DOUBT_NO_RECORD;
        int64_t from_ms = record->timestamp_ms - CLOCK_SKEW_MS;

        while (is_there && least <= n && message_partition(key, least) != origin)
                least++;
        for (int32_t i = least > n ? 1 : least; i <= n; i++) {
                int32_t p = message_partition(key, i);

                if (is_there && p == origin)
                        continue;
                if (from_ms < times[p])
                        times[p] = from_ms;
                if (has_grown && search->kept_ms[p] > from_ms)
                        record->may_be_lost = 1;
        }
}

/* Shorten the ranges to what must be read. Returns 0, or -1 with the reason. */
static int
narrow(struct quarantine_search *search, struct offsets *offsets, struct error *error)
{
        struct quarantine *quarantine = search->quarantine;
        int64_t *begins = mem_alloc(search->n_ranges * sizeof(*begins));
        int64_t *times = mem_alloc(search->n_ranges * sizeof(*times));
        int result = 0;

        for (size_t p = 0; p < search->n_ranges; p++) {
                begins[p] = search->ranges[p].to;
                times[p] = INT64_MAX;
        }
        for (size_t i = 0; i < quarantine->n; i++) {
                struct quarantine_record *record = &quarantine->records[i];

                record->doubt = first_doubt(search, record);
                if (record->doubt == QUARANTINE_DOUBT_NO_RECORD &&
                    record->delivery.offset < begins[record->delivery.partition])
                        begins[record->delivery.partition] = record->delivery.offset;
                if (record->key_len > 0)
                        note_times(search, record, times);
        }
        for (size_t p = 0; p < search->n_ranges && result == 0; p++) {
                struct range *range = &search->ranges[p];

                if (times[p] == INT64_MAX)
                        range->from = begins[p];
                else
                        result = offsets_begin_at(offsets, range, times[p], KAFKA_ACCESS_TIMEOUT_MS, error);
                if (begins[p] < range->from)
                        range->from = begins[p];
        }
        free(begins);
        free(times);
        return result;
}

/* Settle the doubt of the records that were quarantined from the place of a delivery. */
static void
check_place(const struct quarantine_search *search, const struct quarantine_record *found)
{
        size_t n = search->quarantine->n;

        for (size_t i = find_first(search->by_place, n, found, compare_places);
             i < n && compare_places(search->by_place[i], found) == 0; i++) {
                struct quarantine_record *record = search->by_place[i];

                record->has_delivery = quarantine_compare_identities(record, found) == 0;
                record->doubt = !record->has_delivery ? QUARANTINE_DOUBT_OTHER_RECORD
                                : record->may_be_lost ? QUARANTINE_DOUBT_PARTLY_DELETED
                                                      : QUARANTINE_DOUBT_NONE;
        }
}

/*
 * Return whether a release with the source, key and signature of a record is one of its delivery. `named` is
 * the ID that the release names. It may be another record's: when the offsets of the routers were set back,
 * quarantine has a delivery twice.
 *
 * If the record itself came from a release, that release and those before it are releases of its
 * predecessors. In the partition of the delivery they do not come after it. In another partition, which the
 * key had before or has since partitions were added, offsets do not tell them apart; but they name records
 * quarantined no later than the predecessor. Partitions are read in any order, so a decision about another
 * partition must not depend on what was read before.
 */
static int
is_release_of(const struct quarantine_record *record, const struct release_id *named,
              const struct release_id *place)
{
        if (release_id_compare(&record->id, named) == 0)
                return 1;
        if (record->signature_len == 0)
                return 0;
        if (record->released_from.partition < 0)
                return 1;
        if (place->partition == record->delivery.partition)
                return record->doubt == QUARANTINE_DOUBT_NONE && place->offset > record->delivery.offset;
        return named->partition != record->released_from.partition ||
               named->offset > record->released_from.offset;
}

static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct quarantine_search *search = arg;
        size_t n = search->quarantine->n;
        struct quarantine_record found;
        struct release_id named;

        (void)index;
        (void)error;
        terminal_progress_step(&search->progress);
        quarantine_borrow_identity(&found, message);
        found.delivery = (struct release_id){message->partition, message->offset};
        check_place(search, &found);
        if (release_id_parse(message_header(message, RECORD_RELEASED), &named) != 0)
                return RANGE_GO_ON;
        for (size_t i = find_first(search->by_identity, n, &found, quarantine_compare_identities);
             i < n && quarantine_compare_identities(search->by_identity[i], &found) == 0; i++) {
                struct quarantine_record *record = search->by_identity[i];

                if (record->release.partition < 0 && is_release_of(record, &named, &found.delivery))
                        record->release = found.delivery;
        }
        return RANGE_GO_ON;
}

static int
read_deliveries(struct quarantine_search *search)
{
        struct quarantine *quarantine = search->quarantine;
        enum range_result result;
        struct error error;

        terminal_progress_begin(&search->progress, "looking for releases in deliveries",
                                kafka_access_count_offsets(search->ranges, search->n_ranges));
        result = range_read(quarantine->config, quarantine->query->bootstrap, search->ranges,
                            search->n_ranges, on_delivery, search, &error);
        terminal_progress_end(&search->progress);
        return kafka_access_status(result, &error);
}

/* Find the ranges to read. Returns 0, or an exit status after printing the reason. */
static int
bound(struct quarantine_search *search, struct offsets *offsets)
{
        const struct quarantine *quarantine = search->quarantine;
        enum range_result result = RANGE_DONE;
        struct error error;

        if (offsets_stable_ranges(offsets, quarantine->config->deliveries_topic, &search->ranges,
                                  &search->n_ranges, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0 ||
            /* Including open transactions, which may have releases: range_read() waits for them. */
            offsets_bounds(offsets, search->ranges, search->n_ranges, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                return kafka_access_fail(offsets_is_denied(offsets), error.text);
        search->kept_ms = mem_alloc(search->n_ranges * sizeof(*search->kept_ms));
        result = range_kept_since(quarantine->config, quarantine->query->bootstrap, search->ranges,
                                  search->n_ranges, search->kept_ms, &error);
        if (result != RANGE_DONE)
                return kafka_access_status(result, &error);
        if (narrow(search, offsets, &error) != 0)
                return command_fail(EX_UNAVAILABLE, "%s", error.text);
        return 0;
}

static void
decide_state(struct quarantine_record *record)
{
        record->doubtful_place = record->delivery;
        if (record->release.partition >= 0 || record->returned_as.partition >= 0)
                record->state = QUARANTINE_RELEASED;
        else if (record->key_len > 0 && record->doubt != QUARANTINE_DOUBT_NONE)
                record->state = QUARANTINE_UNSURE;
}

/* Decide on the records of one delivery. Only the first can be released. A doubt about one is about all. */
static void
decide_together(struct quarantine_record **records, size_t n)
{
        const struct quarantine_record *first = NULL, *unsure = NULL;

        for (size_t i = 0; i < n; i++) {
                decide_state(records[i]);
                if (unsure == NULL && records[i]->state == QUARANTINE_UNSURE)
                        unsure = records[i];
        }
        for (size_t i = 0; i < n; i++) {
                struct quarantine_record *record = records[i];

                if (record->state == QUARANTINE_RELEASED || record->signature_len == 0)
                        continue;
                if (record->state == QUARANTINE_NOT_RELEASED && unsure != NULL) {
                        record->state = QUARANTINE_UNSURE;
                        record->doubt = unsure->doubt;
                        record->doubtful_place = unsure->doubtful_place;
                }
                if (first == NULL)
                        first = record;
                else
                        record->earlier_copy = first->id;
        }
}

static void
decide(const struct quarantine_search *search)
{
        struct quarantine_record **records = search->by_identity;
        size_t n = search->quarantine->n;

        for (size_t i = 0, next; i < n; i = next) {
                next = i + 1;
                while (next < n && quarantine_compare_identities(records[next], records[i]) == 0)
                        next++;
                decide_together(records + i, next - i);
        }
}

int
quarantine_search(struct quarantine *quarantine, struct offsets *offsets)
{
        struct quarantine_search search = {.quarantine = quarantine};
        int status;

        if (quarantine->n == 0)
                return 0;
        search.by_place = sort_records(quarantine, sort_places);
        search.by_identity = sort_records(quarantine, sort_identities);
        status = bound(&search, offsets);
        if (status == 0)
                status = read_deliveries(&search);
        if (status == 0)
                decide(&search);
        free(search.by_place);
        free(search.by_identity);
        free(search.ranges);
        free(search.kept_ms);
        return status;
}
