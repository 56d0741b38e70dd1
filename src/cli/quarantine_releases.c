#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_look.h"
#include "cli/quarantine_print.h"
#include "cli/terminal.h"
#include "kafka/message.h"

/* The clocks of routers, which stamp records of quarantine, and brokers, which stamp releases, differ by less than this. */
#define CLOCK_SKEW_MS (60 * 60 * INT64_C(1000))

/*
 * The search for releases in `deliveries`.
 *
 * A release is appended after the delivery that was quarantined, in the partition of its key. So its absence is certain only
 * if the delivery is still at its place, which also shows that the topic was not made anew meanwhile, and all that came after
 * it is there. The number of partitions may have grown between quarantine and release: the key may have belonged to other
 * partitions, which are searched from the time of the quarantine on.
 */
struct search {
        struct quarantine *quarantine;
        struct range *ranges; /* of the partitions; the index is the number */
        size_t n_ranges;
        int64_t *kept_ms;                 /* of each: range_kept_since() */
        struct quarantined **by_place;    /* the records by the places of their deliveries, */
        struct quarantined **by_identity; /* and by source, key and signature */
        struct terminal_progress progress;
};

static int
compare_places(const struct quarantined *one, const struct quarantined *other)
{
        return release_id_compare(&one->delivery, &other->delivery);
}

static int
sort_places(const void *a, const void *b)
{
        const struct quarantined *one = *(struct quarantined *const *)a,
                                 *other = *(struct quarantined *const *)b;

        return compare_places(one, other);
}

static int
sort_identities(const void *a, const void *b)
{
        const struct quarantined *one = *(struct quarantined *const *)a,
                                 *other = *(struct quarantined *const *)b;
        int order = quarantine_compare_identities(one, other);

        return order != 0 ? order : release_id_compare(&one->id, &other->id);
}

/* The records in an order of their own. */
static struct quarantined **
sort_records(const struct quarantine *quarantine, int (*compare)(const void *a, const void *b))
{
        struct quarantined **sorted = mem_alloc(quarantine->n * sizeof(struct quarantined *));

        for (size_t i = 0; i < quarantine->n; i++)
                sorted[i] = &quarantine->records[i];
        qsort(sorted, quarantine->n, sizeof(struct quarantined *), compare);
        return sorted;
}

/* The first that does not come before the one that is sought. */
static size_t
find_first(struct quarantined **sorted, size_t n, const struct quarantined *sought,
           int (*compare)(const struct quarantined *one, const struct quarantined *other))
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

/* What can be said before the delivery is read. */
static enum quarantine_doubt
first_doubt(const struct search *search, const struct quarantined *record)
{
        const struct release_id *place = &record->delivery;

        if (place->partition < 0)
                return QUARANTINE_NO_PLACE;
        if ((size_t)place->partition >= search->n_ranges ||
            place->offset >= search->ranges[place->partition].to)
                return QUARANTINE_ENDS_BEFORE;
        return place->offset < search->ranges[place->partition].from ? QUARANTINE_DELETED
                                                                     : QUARANTINE_NO_RECORD;
}

/*
 * Note from which time on a record's releases may be in partitions other than its delivery's: those to which its key
 * belonged or belongs, from the least number of partitions under which its delivery came to where it is.
 */
static void
note_times(const struct search *search, struct quarantined *record, int64_t *times)
{
        struct span key = {record->key, record->key_len};
        int32_t n = (int32_t)search->n_ranges, origin = record->delivery.partition, least = 1;
        int has_grown = message_partition(key, n) != origin, is_there = record->doubt == QUARANTINE_NO_RECORD;
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

/* Leave out of the ranges what need not be read. Returns 0, or -1 with the reason. */
static int
narrow(struct search *search, struct offsets *offsets, struct error *error)
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
                struct quarantined *record = &quarantine->records[i];

                record->doubt = first_doubt(search, record);
                if (record->doubt == QUARANTINE_NO_RECORD &&
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

/* Compare the delivery at a place with the records that were quarantined from there. */
static void
check_place(const struct search *search, const struct quarantined *found)
{
        size_t n = search->quarantine->n;

        for (size_t i = find_first(search->by_place, n, found, compare_places);
             i < n && compare_places(search->by_place[i], found) == 0; i++) {
                struct quarantined *record = search->by_place[i];

                record->doubt = quarantine_compare_identities(record, found) != 0 ? QUARANTINE_OTHER_RECORD
                                : record->may_be_lost                             ? QUARANTINE_PARTLY_DELETED
                                                                                  : QUARANTINE_NO_DOUBT;
        }
}

/*
 * Whether a release that has a record's source, key and signature is one of its delivery. It names a record by its ID, but not
 * always this one: the delivery is in quarantine twice, as different records, when the offsets of the routers were set back.
 *
 * If the record came of a release itself, that one and those before it are releases of its predecessors. In the partition of
 * the delivery these do not come after it. In another one, where the key belonged or belongs because partitions were added,
 * offsets do not tell; but they name records that were quarantined no later than the predecessor. Partitions are read in no
 * order, so what is decided about another one must not depend on what has been read.
 */
static int
is_release_of(const struct quarantined *record, const struct release_id *named,
              const struct release_id *place)
{
        if (release_id_compare(&record->id, named) == 0)
                return 1;
        if (record->signature_len == 0)
                return 0;
        if (record->came_of.partition < 0)
                return 1;
        if (place->partition == record->delivery.partition)
                return record->doubt == QUARANTINE_NO_DOUBT && place->offset > record->delivery.offset;
        return named->partition != record->came_of.partition || named->offset > record->came_of.offset;
}

static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct search *search = arg;
        size_t n = search->quarantine->n;
        struct quarantined found;
        struct release_id named;

        (void)index;
        (void)error;
        terminal_progress_step(&search->progress);
        quarantine_identify(&found, message);
        found.delivery = (struct release_id){message->partition, message->offset};
        check_place(search, &found);
        if (release_id_parse(message_header(message, RECORD_RELEASED), &named) != 0)
                return RANGE_GO_ON;
        for (size_t i = find_first(search->by_identity, n, &found, quarantine_compare_identities);
             i < n && quarantine_compare_identities(search->by_identity[i], &found) == 0; i++) {
                struct quarantined *record = search->by_identity[i];

                if (record->release.partition < 0 && is_release_of(record, &named, &found.delivery))
                        record->release = found.delivery;
        }
        return RANGE_GO_ON;
}

static int
read_deliveries(struct search *search)
{
        struct quarantine *quarantine = search->quarantine;
        enum range_result result;
        struct error error;

        terminal_progress_begin(&search->progress, "looking for releases in deliveries",
                                kafka_access_count_offsets(search->ranges, search->n_ranges));
        result = range_read(quarantine->config, quarantine->wish->bootstrap, search->ranges, search->n_ranges,
                            on_delivery, search, &error);
        terminal_progress_end(&search->progress);
        return result == RANGE_DONE ? 0 : quarantine_failed(quarantine->wish, result, &error);
}

/* Up to where there are records of transactions that are open, so that they are waited for: they may be releases. */
static int
include_open(const struct search *search, struct offsets *offsets, struct error *error)
{
        for (size_t p = 0; p < search->n_ranges; p++) {
                struct range *range = &search->ranges[p];

                if (offsets_bounds(offsets, range->topic, range->partition, &range->from, &range->to,
                                   KAFKA_ACCESS_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        return 0;
}

/* Find out what of `deliveries` is to be read. Returns 0, or an exit status after saying why. */
static int
bound(struct search *search, struct offsets *offsets)
{
        const struct quarantine *quarantine = search->quarantine;
        enum range_result result = RANGE_DONE;
        struct error error;

        if (offsets_stable_ranges(offsets, quarantine->config->deliveries_topic, &search->ranges,
                                  &search->n_ranges, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0 ||
            include_open(search, offsets, &error) != 0)
                return quarantine_refuse(quarantine->wish,
                                         offsets_is_denied(offsets) ? EX_NOPERM : EX_UNAVAILABLE, "%s",
                                         error.text);
        search->kept_ms = mem_alloc(search->n_ranges * sizeof(*search->kept_ms));
        result = range_kept_since(quarantine->config, quarantine->wish->bootstrap, search->ranges,
                                  search->n_ranges, search->kept_ms, &error);
        if (result != RANGE_DONE)
                return quarantine_failed(quarantine->wish, result, &error);
        if (narrow(search, offsets, &error) != 0)
                return quarantine_refuse(quarantine->wish, EX_UNAVAILABLE, "%s", error.text);
        return 0;
}

static void
decide_state(struct quarantined *record)
{
        record->doubted = record->delivery;
        if (record->release.partition >= 0 || record->came_back.partition >= 0)
                record->state = QUARANTINE_RELEASED;
        else if (record->key_len > 0 && record->doubt != QUARANTINE_NO_DOUBT)
                record->state = QUARANTINE_UNSURE;
}

/*
 * Of the records of one delivery, which may be one in quarantine several times, only the first can be released. What may have become of
 * one of them may have become of all.
 */
static void
decide_together(struct quarantined **records, size_t n)
{
        const struct quarantined *first = NULL, *unsure = NULL;

        for (size_t i = 0; i < n; i++) {
                decide_state(records[i]);
                if (unsure == NULL && !records[i]->is_stub && records[i]->state == QUARANTINE_UNSURE)
                        unsure = records[i];
        }
        for (size_t i = 0; i < n; i++) {
                struct quarantined *record = records[i];

                if (record->state == QUARANTINE_RELEASED || record->signature_len == 0 || record->is_stub)
                        continue;
                if (record->state == QUARANTINE_WAITING && unsure != NULL) {
                        record->state = QUARANTINE_UNSURE;
                        record->doubt = unsure->doubt;
                        record->doubted = unsure->doubted;
                }
                if (first == NULL)
                        first = record;
                else
                        record->twin = first->id;
        }
}

static void
decide(const struct search *search)
{
        struct quarantined **records = search->by_identity;
        size_t n = search->quarantine->n;

        for (size_t i = 0, next; i < n; i = next) {
                next = i + 1;
                while (next < n && quarantine_compare_identities(records[next], records[i]) == 0)
                        next++;
                decide_together(records + i, next - i);
        }
}

int
quarantine_find_releases(struct quarantine *quarantine, struct offsets *offsets)
{
        struct search search = {.quarantine = quarantine};
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

char *
quarantine_doubt_text(const struct quarantine *quarantine, const struct quarantined *record,
                      char text[QUARANTINE_DOUBT_SIZE])
{
        static const char *const what[] = {
            [QUARANTINE_NO_DOUBT] = "has it",
            [QUARANTINE_DELETED] = "no longer has it",
            [QUARANTINE_ENDS_BEFORE] = "ends before that: it was made anew or restored",
            [QUARANTINE_NO_RECORD] = "has no record there",
            [QUARANTINE_OTHER_RECORD] = "has another record there: it was made anew or restored",
            [QUARANTINE_PARTLY_DELETED] =
                "has more partitions since, of which one has lost the records of that time",
        };
        char place[RELEASE_ID_SIZE];

        if (record->doubt == QUARANTINE_NO_PLACE)
                (void)snprintf(text, QUARANTINE_DOUBT_SIZE, "it does not say where in %s its delivery is",
                               quarantine->config->deliveries_topic);
        else
                (void)snprintf(text, QUARANTINE_DOUBT_SIZE, "its delivery was at %s, and %s %s",
                               quarantine_print_place(&record->doubted, place),
                               quarantine->config->deliveries_topic, what[record->doubt]);
        return text;
}
