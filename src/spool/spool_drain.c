#include "spool/spool_drain.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heartbeat.h"
#include "base/log.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "base/process.h"
#include "spool/drain_producer.h"
#include "spool/kept_segments.h"
#include "spool/noted_damage.h"
#include "spool/segment_drain.h"
#include "spool/spool_place.h"

#define TURN_MS 200     /* between looks for new segments */
#define SHORT_TURN_MS 5 /* while the segment that is being written ends */
#define PAUSE_MS 1000   /* after a failure */
#define END_MS 10000    /* between ends of the segment that is being written, while others are kept */

struct spool_drain {
        const struct spool_directory *directory;
        struct spool_writer *writer; /* NULL: none */
        struct spool_stats *stats;
        struct spool_drain_owner owner;
        pthread_t thread;
        int pipe[2];
        atomic_int state;
        struct segment_watch watch;
        struct log_flood refusals;

        /* The thread's own. */
        struct drain_producer appends;
        int64_t pause_until;             /* monotonic ms */
        uint64_t old;                    /* segments up to this number were written by an earlier process */
        uint64_t counted;                /* the last of these that was counted */
        struct segment_drain *segment;   /* NULL: none is being read */
        struct segment_drain *finishing; /* has been read before it, and waits for reports; NULL: none */
        uint64_t n_ended;                /* segments that were deleted or left behind */
        struct kept_segments kept;
        struct noted_damage damage;
        int64_t ended_ms; /* monotonic: when the segment that was being written was last ended */
};

static void
on_report(void *record_arg, const struct producer_outcome *outcome, void *arg)
{
        struct spool_drain *drain = arg;
        const struct segment_drain_sent sent = segment_drain_report(record_arg, outcome);

        drain_producer_note(&drain->appends, outcome, sent.bytes, sent.took_ms);
        if (outcome->failure == NULL || outcome->is_final)
                drain->owner.answered(drain->owner.arg);
}

static void
close_producer(struct spool_drain *drain)
{
        drain_producer_close(&drain->appends);
        if (drain->segment != NULL)
                segment_drain_fail_outstanding(drain->segment);
        if (drain->finishing != NULL)
                segment_drain_fail_outstanding(drain->finishing);
}

/* Return whether there is a producer for the segment, after replacing one that does not suit. */
static int
has_producer(struct spool_drain *drain)
{
        enum producer_batching batching = segment_drain_batching(drain->segment);

        if (drain_producer_works(&drain->appends)) {
                if (drain->appends.batching == batching)
                        return 1;
                if (drain->finishing != NULL)
                        return 0; /* its records are still in flight */
        }
        close_producer(drain);
        if (drain_producer_open(&drain->appends, batching) == 0)
                return 1;
        drain->pause_until = clock_monotonic_ms() + PAUSE_MS;
        return 0;
}

/* Leave a segment behind, with refused records, until begin_segment(). segment is NULL if it did not open. */
static void
keep(struct spool_drain *drain, uint64_t number, struct segment_drain *segment, int is_counted,
     const char *reason)
{
        drain_producer_explain(&drain->appends, reason);
        /* Reading that was interrupted needs no word in the log. */
        kept_segments_add(&drain->kept, number, segment, is_counted,
                          atomic_load(&drain->watch.is_stopping) ? NULL : reason);
        drain->n_ended++;
}

/* Read a segment. If it is new, count its records if an earlier process wrote it. */
static struct segment_drain *
open_segment(struct spool_drain *drain, uint64_t number, int is_new)
{
        struct error error;
        struct segment_drain *segment =
            segment_drain_open(drain->directory, number, drain->stats, &drain->refusals, &drain->damage,
                               &drain->watch, &error);

        if (segment == NULL) {
                keep(drain, number, NULL, !is_new, error.text);
                return NULL;
        }
        if (is_new) {
                if (number <= drain->old) {
                        segment_drain_count(segment);
                        spool_stats_reduce(&drain->stats->uncounted, 1);
                }
                if (number > drain->counted)
                        drain->counted = number;
        }
        return segment;
}

/* Begin to drain a segment, anew if it was left behind. */
static void
begin_segment(struct spool_drain *drain, uint64_t number)
{
        struct kept_segment kept;
        struct error error;
        int is_new = number > drain->counted;

        if (kept_segments_take(&drain->kept, number, &kept)) {
                is_new = !kept.is_counted;
                drain->segment = kept.segment;
        }
        if (drain->segment == NULL)
                drain->segment = open_segment(drain, number, is_new);
        if (drain->segment == NULL || segment_drain_begin(drain->segment, &error) == 0)
                return;
        keep(drain, number, drain->segment, 1, error.text);
        drain->segment = NULL;
}

/*
 * Return the number of the first segment that can be drained, or 0 after setting the state. The one that is
 * being written is ended when it is the only one.
 */
static uint64_t
choose_segment(struct spool_drain *drain)
{
        uint64_t limit = drain->writer == NULL ? UINT64_MAX : spool_writer_limit(drain->writer);
        uint64_t current = drain->writer == NULL ? 0 : spool_writer_segment(drain->writer), chosen = 0;
        uint64_t finishing = drain->finishing == NULL ? 0 : segment_drain_number(drain->finishing);
        struct spool_listing listing;
        struct error error;
        struct kept_choice choice;

        if (spool_directory_list(drain->directory, 0, &listing, &error) != 0) {
                drain_producer_note_failure(&drain->appends, error.text);
                drain->pause_until = clock_monotonic_ms() + PAUSE_MS;
                return 0;
        }
        kept_segments_choose(&drain->kept, &listing, limit, finishing, &choice);
        atomic_store(&drain->stats->kept_oldest_ms, choice.oldest_ms);
        if (choice.fresh == 0 && current != 0 &&
            (choice.n_failed + choice.n_others == 0 || clock_monotonic_ms() - drain->ended_ms >= END_MS)) {
                spool_writer_end_segment(drain->writer);
                drain->ended_ms = clock_monotonic_ms();
        }
        chosen = choice.fresh != 0 ? choice.fresh : choice.due;
        if (chosen != 0 || current != 0 || finishing != 0 || choice.n_failed > 0)
                atomic_store(&drain->state, SPOOL_DRAIN_WORKING);
        else
                atomic_store(&drain->state, choice.n_others > 0 ? SPOOL_DRAIN_KEPT : SPOOL_DRAIN_EMPTY);
        if (listing.n_segments == 0 && finishing == 0 && drain->writer != NULL)
                spool_writer_note_missing(drain->writer, limit);
        spool_listing_free(&listing);
        return chosen;
}

/* Read a segment of an earlier process while Kafka is away, so that its records are counted. */
static void
count_segments(struct spool_drain *drain)
{
        struct spool_listing listing;
        struct error error;
        size_t i = 0;

        if (atomic_load(&drain->stats->uncounted) == 0 ||
            spool_directory_list(drain->directory, 0, &listing, &error) != 0)
                return;
        while (i < listing.n_segments && listing.segments[i].number <= drain->counted)
                i++;
        if (i < listing.n_segments && listing.segments[i].number <= drain->old) {
                struct kept_segment unread;
                struct segment_drain *segment;

                (void)kept_segments_take(&drain->kept, listing.segments[i].number, &unread);
                segment = open_segment(drain, listing.segments[i].number, 1);
                if (segment != NULL && segment_drain_summary(segment)->n_records > 0)
                        spool_stats_note_oldest(drain->stats, segment_drain_summary(segment)->oldest_ms);
                segment_drain_close(segment);
                drain->counted = listing.segments[i].number;
        }
        spool_listing_free(&listing);
}

/* Kafka has all of the segment. Takes it over. */
static void
finish_segment(struct spool_drain *drain, struct segment_drain *segment)
{
        uint64_t number = segment_drain_number(segment);
        const struct segment_summary *summary = segment_drain_summary(segment);
        char name[SPOOL_NAME_SIZE];
        struct error error;

        if (segment_drain_remove(segment, &error) != 0) {
                keep(drain, number, segment, 1, error.text);
                return;
        }
        log_info("spool segment drained segment=%s records=%" PRIu64 " damaged=%s",
                 spool_directory_name(number, name), summary->n_records,
                 summary->damaged_bytes > 0 ? "yes" : "no");
        segment_drain_close(segment);
        drain->n_ended++;
}

/*
 * Some records failed, maybe before Kafka was back, or were refused in a batch. A producer most of whose
 * records fail is replaced by a more patient one: it may be stuck, or Kafka takes longer than ack_timeout.
 * Takes the segment over.
 */
static void
append_again(struct spool_drain *drain, struct segment_drain *segment)
{
        int has_failed = segment_drain_pass(segment)->n_failed > 0;
        struct error error;

        if (segment_drain_pass(segment)->n_acknowledged <= segment_drain_pass(segment)->n_failed) {
                close_producer(drain);
                drain_producer_be_careful(&drain->appends);
        }
        if (drain->segment == NULL && (!has_failed || drain->appends.is_proven)) {
                if (segment_drain_begin(segment, &error) == 0) {
                        drain->segment = segment;
                        return;
                }
                if (!has_failed) {
                        keep(drain, segment_drain_number(segment), segment, 1, error.text);
                        return;
                }
        }
        kept_segments_add(&drain->kept, segment_drain_number(segment), segment, 1, NULL);
        drain->n_ended++;
}

/* If the pass over a segment has ended, decide what becomes of it. */
static void
end_pass(struct spool_drain *drain, struct segment_drain **place)
{
        struct segment_drain *segment = *place;
        enum segment_drain_result result =
            segment == NULL ? SEGMENT_DRAIN_MORE : segment_drain_result(segment);

        if (result == SEGMENT_DRAIN_MORE)
                return;
        *place = NULL;
        if (result == SEGMENT_DRAIN_DONE) {
                finish_segment(drain, segment);
        } else if (result == SEGMENT_DRAIN_AGAIN) {
                append_again(drain, segment);
        } else {
                keep(drain, segment_drain_number(segment), segment, 1,
                     result == SEGMENT_DRAIN_KEPT ? "Kafka refuses records of it"
                                                  : "the disk does not return all of it");
        }
}

/* Whether the next segment can be read, while the last records of this one are in flight. */
static int
is_ahead(const struct spool_drain *drain)
{
        return drain->segment != NULL && drain->finishing == NULL && drain->appends.is_proven &&
               segment_drain_is_read(drain->segment) && segment_drain_pass(drain->segment)->n_failed == 0;
}

static int
has_ended(const struct segment_drain *segment)
{
        return segment != NULL && segment_drain_result(segment) != SEGMENT_DRAIN_MORE;
}

/* Wait until the producer has something to report, or for the next turn. */
static void
wait_for_reports(struct spool_drain *drain)
{
        struct pollfd readable = {drain->pipe[0], POLLIN, 0};
        char bytes[64];

        if (drain->appends.producer != NULL &&
            (is_ahead(drain) || has_ended(drain->segment) || has_ended(drain->finishing)))
                return;
        if (poll(&readable, 1, clock_monotonic_ms() - drain->ended_ms < TURN_MS ? SHORT_TURN_MS : TURN_MS) >
            0)
                (void)!read(drain->pipe[0], bytes, sizeof(bytes));
        if (drain->appends.producer != NULL)
                producer_serve(drain->appends.producer);
}

/* Take the next segment to be read, if there is one. */
static void
take_segment(struct spool_drain *drain)
{
        uint64_t number;

        if (is_ahead(drain)) {
                drain->finishing = drain->segment;
                drain->segment = NULL;
        }
        if (drain->segment != NULL)
                return;
        if (drain->finishing == NULL && drain->writer != NULL && atomic_load(&drain->stats->segments) == 0) {
                atomic_store(&drain->state, SPOOL_DRAIN_EMPTY);
                spool_stats_clear(drain->stats);
                close_producer(drain); /* an idle one would keep its connections */
                drain_producer_forget_failures(&drain->appends);
                return;
        }
        number = choose_segment(drain);
        if (number != 0 && drain->owner.may_append(drain->owner.arg))
                begin_segment(drain, number);
        else if (number != 0)
                count_segments(drain);
}

/* Send what the window has room for, beside the last records of the segment before. */
static void
send_records(struct spool_drain *drain)
{
        struct segment_drain_window window =
            drain_producer_window(&drain->appends, drain->owner.has_traffic(drain->owner.arg));
        struct error error;

        if (drain->finishing != NULL)
                segment_drain_narrow(drain->finishing, &window);
        if (drain->owner.may_append(drain->owner.arg) &&
            segment_drain_send(drain->segment, drain->appends.producer, &window, &error) != 0 &&
            !atomic_load(&drain->watch.is_stopping))
                drain_producer_note_failure(&drain->appends, error.text);
}

/* Do what can be done without waiting. */
static void
take_turn(struct spool_drain *drain)
{
        if (drain->writer != NULL)
                spool_place_watch(drain->directory, drain->stats);
        take_segment(drain);
        heartbeat_beat(&drain->watch.heartbeat); /* it has waited for the disk */
        if (drain->segment != NULL && clock_monotonic_ms() >= drain->pause_until && has_producer(drain))
                send_records(drain);
        end_pass(drain, &drain->finishing);
        end_pass(drain, &drain->segment);
}

static void *
run(void *arg)
{
        struct spool_drain *drain = arg;

        (void)pthread_setname_np(pthread_self(), "spool-drain");
        for (uint64_t n_ended = 0; !atomic_load(&drain->watch.is_stopping); n_ended = drain->n_ended) {
                heartbeat_beat(&drain->watch.heartbeat);
                take_turn(drain);
                if (drain->n_ended == n_ended)
                        wait_for_reports(drain);
        }
        close_producer(drain);
        return NULL;
}

struct spool_drain *
spool_drain_new(const struct spool_directory *directory, struct spool_writer *writer,
                struct spool_stats *stats, uint64_t old, const struct config *config, const char *bootstrap,
                const struct spool_drain_owner *owner, struct error *error)
{
        struct spool_drain *drain = mem_alloc(sizeof(*drain));

        *drain = (struct spool_drain){
            .directory = directory, .writer = writer, .stats = stats, .old = old, .owner = *owner};
        drain->kept.stats = stats;
        drain->damage.writer = writer;
        if (pipe2(drain->pipe, O_NONBLOCK | O_CLOEXEC) == 0) {
                drain_producer_init(&drain->appends, config, bootstrap, drain->pipe[1], on_report, drain);
                if (pthread_create(&drain->thread, NULL, run, drain) == 0)
                        return drain;
                (void)close(drain->pipe[0]);
                (void)close(drain->pipe[1]);
        }
        (void)error_set(error, "cannot start the spool's thread: out of descriptors or threads");
        free(drain);
        return NULL;
}

void
spool_drain_free(struct spool_drain *drain)
{
        if (drain == NULL)
                return;
        atomic_store(&drain->watch.is_stopping, 1);
        (void)!write(drain->pipe[1], "q", 1);
        process_join(drain->thread, "spool");
        drain_producer_end(&drain->appends);
        segment_drain_close(drain->segment);
        segment_drain_close(drain->finishing);
        kept_segments_clear(&drain->kept);
        noted_damage_clear(&drain->damage);
        (void)close(drain->pipe[0]);
        (void)close(drain->pipe[1]);
        log_flood_end(&drain->refusals);
        free(drain);
}

enum spool_drain_state
spool_drain_state(const struct spool_drain *drain)
{
        return (enum spool_drain_state)atomic_load(&drain->state);
}

void
spool_drain_failure(struct spool_drain *drain, struct error *error)
{
        drain_producer_failure(&drain->appends, error);
}

int
spool_drain_is_trying(const struct spool_drain *drain)
{
        return drain_producer_is_trying(&drain->appends);
}

int
spool_drain_is_alive(struct spool_drain *drain, int64_t limit_ms)
{
        return heartbeat_is_alive(&drain->watch.heartbeat, limit_ms);
}
