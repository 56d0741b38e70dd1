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
#include "kafka/producer.h"
#include "spool/kept_segments.h"
#include "spool/segment_drain.h"

/* What may be in flight: alone; beside other deliveries, which wait behind it; to try whether Kafka works. */
static const struct segment_drain_window alone = {5000, UINT64_C(16) << 20};
static const struct segment_drain_window beside = {500, UINT64_C(1) << 20};
static const struct segment_drain_window trial = {1000, UINT64_C(4) << 20};

#define TURN_MS 200   /* between looks for new segments */
#define PAUSE_MS 1000 /* after a failure */
#define PATIENCE_MAX 1024
#define END_MS 10000 /* between ends of the segment that is being written, while others have failed */

struct spool_drain {
        const struct spool_directory *directory;
        struct spool_writer *writer; /* NULL: none */
        struct spool_stats *stats;
        const struct config *config;
        const char *bootstrap;
        struct spool_drain_owner owner;
        pthread_t thread;
        int pipe[2];
        atomic_int is_stopping;
        atomic_int state;
        struct heartbeat heartbeat;
        pthread_mutex_t mutex; /* protects failure */
        struct error failure;
        struct log_flood failed, refusals, left_behind;

        /* The thread's own. */
        struct producer *producer;
        unsigned patience;             /* of the next producer, for records */
        int is_proven;                 /* the producer has appended a record, and none has failed since */
        int64_t pause_until;           /* monotonic ms */
        uint64_t old;                  /* segments up to this number were written by an earlier process */
        uint64_t counted;              /* the last of these that was counted */
        struct segment_drain *segment; /* NULL: none is being drained */
        uint64_t n_ended;              /* segments that were deleted or left behind */
        struct kept_segments kept;
        int64_t ended_ms; /* monotonic: when the segment that was being written was last ended */
};

static void
note_failure(struct spool_drain *drain, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        drain->is_proven = 0;
        pthread_mutex_lock(&drain->mutex);
        (void)error_set(&drain->failure, "%s", reason);
        pthread_mutex_unlock(&drain->mutex);
        log_flood(&drain->failed, LOG_LEVEL_WARNING,
                  "appending from the spool failed and will be repeated last_reason=%s",
                  log_quote(reason, quoted));
}

static void
on_report(void *record_arg, const struct producer_outcome *outcome, void *arg)
{
        struct spool_drain *drain = arg;

        (void)segment_drain_report(record_arg, outcome);
        if (outcome->failure != NULL) {
                if (!outcome->is_final)
                        note_failure(drain, outcome->failure);
                return;
        }
        drain->is_proven = 1;
        drain->owner.acknowledged(drain->owner.arg);
}

static void
close_producer(struct spool_drain *drain)
{
        producer_free(drain->producer);
        drain->producer = NULL;
        if (drain->segment != NULL)
                segment_drain_fail_outstanding(drain->segment);
}

/* Return whether there is a producer, after replacing one that is broken. */
static int
has_producer(struct spool_drain *drain)
{
        struct error error;

        if (drain->producer != NULL && !producer_is_broken(drain->producer, &error))
                return 1;
        close_producer(drain);
        drain->producer = producer_new(drain->config, drain->bootstrap, drain->patience, drain->pipe[1],
                                       on_report, drain, &error);
        if (drain->producer != NULL)
                return 1;
        note_failure(drain, error.text);
        drain->pause_until = clock_monotonic_ms() + PAUSE_MS;
        return 0;
}

/* Leave a segment behind, and take the next. segment is NULL if it could not be opened. */
static void
keep(struct spool_drain *drain, uint64_t number, struct segment_drain *segment, const char *reason)
{
        char name[SPOOL_NAME_SIZE], quoted[LOG_QUOTED_SIZE];

        log_flood(&drain->left_behind, LOG_LEVEL_WARNING,
                  "a segment of the spool stays and is tried again last_segment=%s last_after_s=%d "
                  "last_reason=%s",
                  spool_directory_name(number, name),
                  (int)(kept_segments_add(&drain->kept, number, segment, 0) / 1000),
                  log_quote(reason, quoted));
        drain->n_ended++;
}

static void
note_damage(const struct spool_drain *drain, const struct segment_drain *segment)
{
        const struct segment_summary *summary = segment_drain_summary(segment);
        char name[SPOOL_NAME_SIZE];

        (void)spool_directory_name(segment_drain_number(segment), name);
        if (summary->damaged_bytes > 0) {
                atomic_fetch_add(&drain->stats->damaged, 1);
                atomic_fetch_add(&drain->stats->lost_bytes, summary->damaged_bytes);
                log_error("a segment of the spool is damaged: deliveries that were answered 200 may be lost "
                          "segment=%s unreadable_bytes=%" PRIu64 " readable_records=%" PRIu64
                          " remedy=\"see gatepost-spool(5), DAMAGE\"",
                          name, summary->damaged_bytes, summary->n_records);
        }
        if (summary->torn_bytes > 0)
                log_notice("a segment of the spool ends in an unfinished write, which was never answered 200 "
                           "segment=%s bytes=%" PRIu64,
                           name, summary->torn_bytes);
}

/* Read a segment. If it is new, count its records if an earlier process wrote it, and log its damage. */
static struct segment_drain *
open_segment(struct spool_drain *drain, uint64_t number, int is_new)
{
        struct error error;
        struct segment_drain *segment =
            segment_drain_open(drain->directory, number, drain->stats, &drain->refusals, &error);

        if (segment == NULL) {
                keep(drain, number, NULL, error.text);
                return NULL;
        }
        if (is_new) {
                note_damage(drain, segment);
                if (number <= drain->old) {
                        atomic_fetch_add(&drain->stats->records, segment_drain_summary(segment)->n_records);
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
                is_new = !kept.was_read;
                drain->segment = kept.segment;
                if (drain->segment != NULL)
                        atomic_fetch_sub(&drain->stats->refused, segment_drain_refused(drain->segment));
        }
        if (drain->segment == NULL)
                drain->segment = open_segment(drain, number, is_new);
        if (drain->segment == NULL || segment_drain_begin(drain->segment, &error) == 0)
                return;
        keep(drain, number, drain->segment, error.text);
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
        struct spool_listing listing;
        struct error error;
        struct kept_choice choice;

        if (spool_directory_list(drain->directory, 0, &listing, &error) != 0) {
                note_failure(drain, error.text);
                drain->pause_until = clock_monotonic_ms() + PAUSE_MS;
                return 0;
        }
        kept_segments_choose(&drain->kept, &listing, limit, &choice);
        atomic_store(&drain->stats->kept_oldest_ms, choice.oldest_ms);
        if (choice.fresh == 0 && current != 0 &&
            (choice.n_failed == 0 || clock_monotonic_ms() - drain->ended_ms >= END_MS)) {
                spool_writer_end_segment(drain->writer);
                drain->ended_ms = clock_monotonic_ms();
        }
        chosen = choice.fresh != 0 ? choice.fresh : choice.due;
        atomic_store(&drain->state, chosen != 0 || current != 0 || choice.n_failed > 0 ? SPOOL_DRAIN_WORKING
                                    : choice.n_others > 0                              ? SPOOL_DRAIN_KEPT
                                                                                       : SPOOL_DRAIN_EMPTY);
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
                if (segment != NULL && atomic_load(&drain->stats->oldest_ms) == 0)
                        atomic_store(&drain->stats->oldest_ms, segment_drain_summary(segment)->oldest_ms);
                segment_drain_close(segment);
                drain->counted = listing.segments[i].number;
        }
        spool_listing_free(&listing);
}

/* Kafka has all of the segment. */
static void
finish_segment(struct spool_drain *drain)
{
        uint64_t number = segment_drain_number(drain->segment);
        const struct segment_summary *summary = segment_drain_summary(drain->segment);
        char name[SPOOL_NAME_SIZE];
        struct error error;

        if (segment_drain_remove(drain->segment, &error) != 0) {
                keep(drain, number, drain->segment, error.text);
        } else {
                log_info("spool segment drained segment=%s records=%" PRIu64 " damaged=%s",
                         spool_directory_name(number, name), summary->n_records,
                         summary->damaged_bytes > 0 ? "yes" : "no");
                segment_drain_close(drain->segment);
                drain->n_ended++;
        }
        drain->segment = NULL;
}

/*
 * A producer that has appended nothing is replaced: it may be stuck. If Kafka takes longer than ack_timeout,
 * the same records would be appended again without end.
 */
static void
replace_producer(struct spool_drain *drain)
{
        close_producer(drain);
        if (drain->patience < PATIENCE_MAX)
                drain->patience *= 2;
}

/* The pass over the segment has ended. */
static void
end_pass(struct spool_drain *drain)
{
        struct segment_drain *segment = drain->segment;
        uint64_t number = segment_drain_number(segment);
        struct error error;

        switch (segment_drain_result(segment)) {
        case SEGMENT_DRAIN_DONE:
                finish_segment(drain);
                break;
        case SEGMENT_DRAIN_KEPT:
                atomic_fetch_add(&drain->stats->refused, segment_drain_refused(segment));
                keep(drain, number, segment, "Kafka refuses records of it, or they cannot be read any more");
                drain->segment = NULL;
                break;
        case SEGMENT_DRAIN_AGAIN:
                if (segment_drain_acknowledged(segment) == 0)
                        replace_producer(drain);
                if (segment_drain_failed(segment) == 0 && segment_drain_begin(segment, &error) == 0)
                        break; /* one by one */
                if (segment_drain_failed(segment) > 0) {
                        (void)kept_segments_add(&drain->kept, number, segment, 1);
                        drain->n_ended++;
                } else {
                        keep(drain, number, segment, error.text);
                }
                drain->segment = NULL;
                break;
        case SEGMENT_DRAIN_MORE:
                break;
        }
}

/* Wait until the producer has something to report, or for the next turn. */
static void
wait_for_reports(struct spool_drain *drain)
{
        struct pollfd readable = {drain->pipe[0], POLLIN, 0};
        char bytes[64];

        if (drain->segment != NULL && drain->producer != NULL &&
            segment_drain_result(drain->segment) != SEGMENT_DRAIN_MORE)
                return;
        if (poll(&readable, 1, TURN_MS) > 0)
                (void)!read(drain->pipe[0], bytes, sizeof(bytes));
        if (drain->producer != NULL)
                producer_serve(drain->producer);
}

/* Do what can be done without waiting. */
static void
take_turn(struct spool_drain *drain)
{
        const struct segment_drain_window *window;
        struct error error;
        uint64_t number;

        if (drain->segment == NULL && drain->writer != NULL && atomic_load(&drain->stats->segments) == 0) {
                atomic_store(&drain->state, SPOOL_DRAIN_EMPTY);
                close_producer(drain); /* an idle one would keep its connections */
                drain->patience = 1;
        } else if (drain->segment == NULL) {
                number = choose_segment(drain);
                if (number != 0 && drain->owner.may_append(drain->owner.arg))
                        begin_segment(drain, number);
                else if (number != 0)
                        count_segments(drain);
        }
        if (drain->segment == NULL || clock_monotonic_ms() < drain->pause_until || !has_producer(drain))
                return;
        window = drain->owner.has_traffic(drain->owner.arg) ? &beside : &alone;
        if (!drain->is_proven)
                window = &trial;
        if (drain->owner.may_append(drain->owner.arg) &&
            segment_drain_send(drain->segment, drain->producer, window, &error) != 0)
                note_failure(drain, error.text);
        end_pass(drain);
}

static void *
run(void *arg)
{
        struct spool_drain *drain = arg;

        (void)pthread_setname_np(pthread_self(), "spool-drain");
        for (uint64_t n_ended = 0; !atomic_load(&drain->is_stopping); n_ended = drain->n_ended) {
                heartbeat_beat(&drain->heartbeat);
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

        *drain = (struct spool_drain){.directory = directory,
                                      .writer = writer,
                                      .stats = stats,
                                      .old = old,
                                      .patience = 1,
                                      .config = config,
                                      .bootstrap = bootstrap,
                                      .owner = *owner};
        pthread_mutex_init(&drain->mutex, NULL);
        if (pipe2(drain->pipe, O_NONBLOCK | O_CLOEXEC) == 0) {
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
        atomic_store(&drain->is_stopping, 1);
        (void)!write(drain->pipe[1], "q", 1);
        process_join(drain->thread, "spool");
        segment_drain_close(drain->segment);
        kept_segments_clear(&drain->kept);
        (void)close(drain->pipe[0]);
        (void)close(drain->pipe[1]);
        log_flood_end(&drain->failed);
        log_flood_end(&drain->refusals);
        log_flood_end(&drain->left_behind);
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
        pthread_mutex_lock(&drain->mutex);
        *error = drain->failure;
        pthread_mutex_unlock(&drain->mutex);
}

int64_t
spool_drain_busy_ms(struct spool_drain *drain)
{
        return heartbeat_age_ms(&drain->heartbeat);
}
