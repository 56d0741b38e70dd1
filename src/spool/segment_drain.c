#include "spool/segment_drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "model/record.h"
#include "spool/segment_places.h"

struct segment_drain {
        const struct spool_directory *directory;
        struct spool_stats *stats;
        struct log_flood *refusals;
        struct noted_damage *damage;
        struct segment_watch *watch;
        uint64_t number;
        struct segment_summary summary;
        unsigned n_unreadable;         /* times in succession that the disk did not return all of it */
        int is_fresh;                  /* listed, and not tried since */
        struct segment_reader *reader; /* NULL between passes */
        struct segment_places places;
        size_t next;       /* index of the record that is read next */
        int is_counted;    /* segment_drain_count() */
        int has_changed;   /* other records can be read than were listed: list them again */
        size_t n_wanted;   /* of this pass: records that Kafka does not have */
        size_t n_tried;    /* of these, the ones that could be read again */
        int is_read;       /* the pass has read all records, or as far as was possible */
        int is_one_by_one; /* each record has a batch of its own, after a pass in which some were refused */
        struct segment_pass pass;
        size_t n_refused_together; /* in this pass, maybe for the size of their batch; not in n_refused */
        int64_t left_ms; /* reception of the oldest record that Kafka lacks after this pass; 0: none */
        size_t outstanding;
        uint64_t outstanding_bytes;
};

/* A record in flight; freed when it is reported. */
struct sent {
        struct segment_drain *segment;
        size_t index;
        uint64_t bytes;
        int64_t received_ms;
        int64_t sent_ms; /* monotonic */
        char body[];
};

static int
open_reader(struct segment_drain *segment, struct error *error)
{
        char name[SPOOL_NAME_SIZE];

        segment_reader_close(segment->reader);
        segment->reader = segment_reader_open(spool_directory_fd(segment->directory),
                                              spool_directory_name(segment->number, name), error);
        segment->next = 0;
        if (segment->reader == NULL)
                return -1;
        segment_reader_watch(segment->reader, segment->watch);
        return 0;
}

/* Whether the list lacks records, maybe, because the disk could not read all of the segment. */
static int
is_partial(const struct segment_drain *segment)
{
        return segment->summary.unreadable_bytes > 0;
}

/* List the records that can be read now, unless that is less than a list of all. */
static int
list(struct segment_drain *segment, int has_all, struct error *error)
{
        struct segment_places places = {NULL, 0};
        struct segment_summary summary;
        int result;

        if (open_reader(segment, error) != 0)
                return -1;
        result = segment_places_read(&places, segment->reader);
        segment_reader_summary(segment->reader, &summary);
        segment_reader_close(segment->reader);
        segment->reader = NULL;
        if (result != 0)
                return error_set(error, "out of memory, or interrupted");
        noted_damage_note(segment->damage, segment->number, &summary, segment->stats);
        segment->n_unreadable = summary.unreadable_bytes > 0 ? segment->n_unreadable + 1 : 0;
        if (!has_all || summary.unreadable_bytes == 0) {
                segment_places_replace(&segment->places, &places);
                segment->summary = summary;
        }
        segment_places_free(&places);
        return 0;
}

/* Correct the count of the records that Kafka does not have. */
static int
list_again(struct segment_drain *segment, struct error *error)
{
        size_t n_before = segment_places_left(&segment->places), n;
        int was_partial = is_partial(segment);

        if (list(segment, !was_partial, error) != 0)
                return -1;
        segment->has_changed = 0;
        n = segment_places_left(&segment->places);
        if (was_partial && !segment->is_counted)
                return 0; /* the writer has counted them, listed or not */
        atomic_fetch_add(&segment->stats->records, n);
        spool_stats_reduce(&segment->stats->records, n_before);
        return 0;
}

struct segment_drain *
segment_drain_open(const struct spool_directory *directory, uint64_t number, struct spool_stats *stats,
                   struct log_flood *refusals, struct noted_damage *damage, struct segment_watch *watch,
                   struct error *error)
{
        struct segment_drain *segment = calloc(1, sizeof(*segment));
        if (segment == NULL) {
                (void)error_set(error, "out of memory");
                return NULL;
        }
        segment->directory = directory;
        segment->number = number;
        segment->stats = stats;
        segment->refusals = refusals;
        segment->damage = damage;
        segment->watch = watch;
        segment->is_fresh = 1;
        if (list(segment, 0, error) == 0)
                return segment;
        segment_drain_close(segment);
        return NULL;
}

void
segment_drain_close(struct segment_drain *segment)
{
        if (segment == NULL)
                return;
        segment_reader_close(segment->reader);
        segment_places_free(&segment->places);
        free(segment);
}

uint64_t
segment_drain_number(const struct segment_drain *segment)
{
        return segment->number;
}

const struct segment_summary *
segment_drain_summary(const struct segment_drain *segment)
{
        return &segment->summary;
}

void
segment_drain_count(struct segment_drain *segment)
{
        segment->is_counted = 1;
        atomic_fetch_add(&segment->stats->records, segment->summary.n_records);
}

int
segment_drain_begin(struct segment_drain *segment, struct error *error)
{
        if (!segment->is_fresh && (segment->has_changed || is_partial(segment)) &&
            list_again(segment, error) != 0)
                return -1;
        segment->is_fresh = 0;
        segment->is_one_by_one |= segment->n_refused_together > 0;
        segment->n_refused_together = 0;
        segment->pass = (struct segment_pass){0};
        segment->left_ms = 0;
        (void)segment_places_reset(&segment->places, FATE_REFUSED);
        segment->n_wanted = segment_places_left(&segment->places);
        segment->n_tried = 0;
        segment->is_read = segment->n_wanted == 0 && is_partial(segment);
        return segment->is_read ? 0 : open_reader(segment, error);
}

/* A record of this reception is left after the pass. */
static void
note_left(struct segment_drain *segment, int64_t received_ms)
{
        if (segment->left_ms == 0 || received_ms < segment->left_ms)
                segment->left_ms = received_ms;
}

static void
refuse(struct segment_drain *segment, size_t index, const char *reason)
{
        char name[SPOOL_NAME_SIZE], quoted[LOG_QUOTED_SIZE];

        segment->places.items[index].fate = FATE_REFUSED;
        if (segment->pass.n_refused++ == 0)
                log_flood(segment->refusals, LOG_LEVEL_ERROR,
                          "Kafka refuses a spooled delivery; its segment stays segment=%s "
                          "record=%zu reason=%s",
                          spool_directory_name(segment->number, name), index + 1, log_quote(reason, quoted));
}

/* Fill in headers and key. Return 0, -1 if memory fails, or -2 if the fields are malformed. */
static int
describe(const struct segment_record *record, struct producer_record *produced)
{
        struct record_header field;
        char now[CLOCK_RFC3339_SIZE];
        size_t at = 0;
        int found, failed = 0;

        produced->headers = rd_kafka_headers_new(16);
        if (produced->headers == NULL)
                return -1;
        while ((found = segment_next_field(record->fields, &at, &field)) > 0) {
                if (field.name[0] == '\0')
                        produced->key = field.value;
                else
                        failed |= rd_kafka_header_add(produced->headers, field.name, -1, field.value.data,
                                                      (ssize_t)field.value.len) != 0;
        }
        failed |= rd_kafka_header_add(produced->headers, RECORD_SPOOLED, -1,
                                      clock_format_ms(clock_now_ms(), now), -1) != 0;
        if (found == 0 && produced->key.len > 0 && !failed)
                return 0;
        rd_kafka_headers_destroy(produced->headers);
        produced->headers = NULL;
        return failed ? -1 : -2;
}

/* Copy what must stay until the report. Return 0, or as describe(). */
static int
prepare(struct segment_drain *segment, const struct segment_record *record, struct producer_record *produced)
{
        struct sent *sent = malloc(sizeof(*sent) + record->body.len);
        int result = sent == NULL ? -1 : describe(record, produced);

        if (result != 0) {
                free(sent);
                return result;
        }
        sent->segment = segment;
        sent->index = segment->next;
        sent->bytes = segment_record_size(record);
        sent->received_ms = record->received_ms;
        sent->sent_ms = clock_monotonic_ms();
        if (record->body.len > 0)
                memcpy(sent->body, record->body.data, record->body.len);
        produced->body = sent->body;
        produced->keeps_body = 1;
        produced->arg = sent;
        return 0;
}

/* Append the next record. Return 0, also if it is refused for good, or -1 with the reason. */
static int
append(struct segment_drain *segment, struct producer *producer, const struct segment_record *record,
       struct error *error)
{
        struct producer_record produced = {.body_len = record->body.len};
        int result = prepare(segment, record, &produced);

        segment->n_tried++;
        if (result == -1)
                return error_set(error, "out of memory");
        if (result == -2) {
                refuse(segment, segment->next, "its fields are malformed");
                note_left(segment, record->received_ms);
                return 0;
        }
        if (producer_append(producer, &produced, error) == 0) {
                segment->places.items[segment->next].fate = FATE_SENT;
                segment->outstanding++;
                segment->outstanding_bytes += segment_record_size(record);
                return 0;
        }
        free(produced.arg);
        if (!produced.is_final)
                return -1;
        refuse(segment, segment->next, error->text);
        note_left(segment, record->received_ms);
        return 0;
}

/* Read on to the next record that Kafka does not have. Return 1, 0 at the end, or -1 with the reason. */
static int
read_next(struct segment_drain *segment, struct segment_record *record, struct error *error)
{
        int found;

        while ((found = segment_reader_next(segment->reader, record)) > 0) {
                while (segment->next < segment->places.n &&
                       segment->places.items[segment->next].offset < record->offset)
                        segment->next++;
                segment->has_changed = segment->next == segment->places.n ||
                                       segment->places.items[segment->next].offset != record->offset;
                if (segment->has_changed)
                        return error_set(error, "more of the segment can be read than before");
                if (segment->places.items[segment->next].fate == FATE_UNKNOWN)
                        return 1;
        }
        return found < 0 ? error_set(error, "out of memory, or interrupted") : 0;
}

int
segment_drain_send(struct segment_drain *segment, struct producer *producer,
                   const struct segment_drain_window *window, struct error *error)
{
        struct segment_record record;

        while (!segment->is_read && segment->outstanding < window->records &&
               segment->outstanding_bytes < window->bytes) {
                int found = read_next(segment, &record, error);

                if (found == 0) {
                        segment->is_read = 1;
                        segment->has_changed |= segment->n_tried < segment->n_wanted;
                        segment_reader_close(segment->reader);
                        segment->reader = NULL; /* a segment that stays needs no descriptor and no memory */
                        break;
                }
                if (found < 0 || append(segment, producer, &record, error) != 0) {
                        segment->pass.n_failed++; /* the reader is past it: another pass will find it */
                        segment->is_read = 1;
                        return -1;
                }
                atomic_store(&segment->stats->oldest_ms, record.received_ms);
        }
        return 0;
}

/* A record that failed may be in Kafka nevertheless; the router drops the second copy. */
struct segment_drain_sent
segment_drain_report(void *arg, const struct producer_outcome *outcome)
{
        struct sent *sent = arg;
        struct segment_drain *segment = sent->segment;
        const struct segment_drain_sent reported = {segment, sent->bytes,
                                                    clock_monotonic_ms() - sent->sent_ms};

        segment->outstanding--;
        segment->outstanding_bytes -= sent->bytes;
        if (outcome->failure != NULL)
                note_left(segment, sent->received_ms);
        if (outcome->failure == NULL) {
                segment->places.items[sent->index].fate = FATE_ACKNOWLEDGED;
                segment->pass.n_acknowledged++;
                atomic_fetch_add(&segment->stats->drained, 1);
                spool_stats_reduce(&segment->stats->records,
                                   1); /* one that is drained anew is not counted again */
        } else if (outcome->is_final && !segment->is_one_by_one) {
                segment->places.items[sent->index].fate = FATE_UNKNOWN;
                segment->n_refused_together++;
        } else if (outcome->is_final) {
                refuse(segment, sent->index, outcome->failure);
        } else {
                segment->places.items[sent->index].fate = FATE_UNKNOWN;
                segment->pass.n_failed++;
        }
        free(sent);
        return reported;
}

/*
 * Kafka limits the size of a batch, and refuses all of it: only what it refuses alone is refused. A record
 * that was readable at first and was not in this pass must not be deleted before it is listed as damaged, nor
 * a segment before the disk has returned all of it.
 */
enum segment_drain_result
segment_drain_result(const struct segment_drain *segment)
{
        if (segment->outstanding > 0 || !segment->is_read)
                return SEGMENT_DRAIN_MORE;
        if (segment->pass.n_failed > 0 || segment->n_refused_together > 0)
                return SEGMENT_DRAIN_AGAIN;
        if (segment->has_changed || is_partial(segment))
                return SEGMENT_DRAIN_UNREADABLE;
        return segment_places_left(&segment->places) > 0 ? SEGMENT_DRAIN_KEPT : SEGMENT_DRAIN_DONE;
}

/* Of records that the pass did not come to, nothing better is known than the oldest of the segment. */
int64_t
segment_drain_oldest_ms(const struct segment_drain *segment)
{
        return segment->left_ms != 0 ? segment->left_ms : segment->summary.oldest_ms;
}

void
segment_drain_narrow(const struct segment_drain *segment, struct segment_drain_window *window)
{
        window->records -= segment->outstanding < window->records ? segment->outstanding : window->records;
        window->bytes -=
            segment->outstanding_bytes < window->bytes ? segment->outstanding_bytes : window->bytes;
}

unsigned
segment_drain_n_unreadable(const struct segment_drain *segment)
{
        return segment->n_unreadable;
}

int
segment_drain_is_read(const struct segment_drain *segment)
{
        return segment->is_read;
}

enum producer_batching
segment_drain_batching(const struct segment_drain *segment)
{
        return segment->is_one_by_one ? PRODUCER_SINGLE : PRODUCER_BULK;
}

const struct segment_pass *
segment_drain_pass(const struct segment_drain *segment)
{
        return &segment->pass;
}

void
segment_drain_fail_outstanding(struct segment_drain *segment)
{
        segment->pass.n_failed += segment_places_reset(&segment->places, FATE_SENT);
        segment->outstanding = 0;
        segment->outstanding_bytes = 0;
}

int
segment_drain_remove(const struct segment_drain *segment, struct error *error)
{
        int is_kept = noted_damage_keeps(segment->damage, &segment->summary), failed;

        crash_point("spool-drained");
        if (is_kept)
                failed = spool_directory_put_aside(segment->directory, segment->number) != 0;
        else
                failed = spool_directory_remove(segment->directory, segment->number) != 0;
        if (failed && errno != ENOENT)
                return error_set(error, "it cannot be deleted: %s", strerror(errno));
        crash_point("spool-removed");
        if (is_kept) /* else a power failure has it drained again */
                (void)!spool_directory_sync(segment->directory);
        spool_stats_reduce(&segment->stats->bytes, segment->summary.size);
        spool_stats_reduce(&segment->stats->segments, 1);
        noted_damage_forget(segment->damage, segment->number);
        return 0;
}
