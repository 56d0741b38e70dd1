#include "dedup/dedup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dedup/merge_plan.h"

#define SLICES_A_WINDOW 16
#define MERGED_SLICES 2 /* whose time one run may have */

static atomic_uint_fast64_t n_tables;

struct dedup {
        uint64_t number;
        uint64_t window_ms;
        int64_t complete_from_ms;
        struct slice_list *slices;
        struct run **runs; /* in the order of offsets */
        size_t n_runs;
        struct run **dropped;
        size_t n_dropped;
        int64_t sealed_to;      /* the records below are in runs or in `sealing` */
        struct run_mark before; /* the last record below sealed_to */
        struct run_mark last;   /* the last record that has an identity */
        enum dedup_trouble trouble;
        int has_doubtful;
        int adds_doubtful; /* the entries in `slices` have some */
        int is_confirmed;  /* the log is the one that the runs are of */
        /* Entries that are being written into a run, or wait for another attempt. */
        struct slice_list *sealing;
        struct run_range sealing_range;
        int is_writing;
        int is_merging;
};

static int64_t
slice_width(uint64_t window_ms)
{
        int64_t width = (int64_t)(window_ms / SLICES_A_WINDOW);

        return width > 0 ? width : 1;
}

/* Limit a timestamp, which any clock may have written, to the year 36 million, so that nothing overflows. */
static int64_t
bounded(int64_t timestamp_ms)
{
        const int64_t most = INT64_C(1) << 60;

        if (timestamp_ms > most)
                return most;
        return timestamp_ms < -most ? -most : timestamp_ms;
}

/* Return the start of the slice of a time: rounded down, also before the epoch. */
static int64_t
slice_start(int64_t width, int64_t timestamp_ms)
{
        int64_t rest = timestamp_ms % width;

        return timestamp_ms - (rest < 0 ? rest + width : rest);
}

struct dedup *
dedup_new(uint64_t window_ms, int64_t complete_from_ms)
{
        struct dedup *dedup = calloc(1, sizeof(*dedup));

        if (dedup == NULL)
                return NULL;
        dedup->window_ms = window_ms;
        dedup->complete_from_ms = complete_from_ms;
        dedup->number = atomic_fetch_add(&n_tables, 1);
        dedup->last.offset = -1;
        dedup->is_confirmed = 1;
        dedup->slices = slice_list_new(slice_width(window_ms));
        if (dedup->slices == NULL) {
                free(dedup);
                return NULL;
        }
        return dedup;
}

void
dedup_free(struct dedup *dedup)
{
        if (dedup == NULL)
                return;
        slice_list_free(dedup->slices);
        slice_list_free(dedup->sealing);
        for (size_t i = 0; i < dedup->n_runs; i++)
                run_free(dedup->runs[i]);
        for (size_t i = 0; i < dedup->n_dropped; i++)
                run_free(dedup->dropped[i]);
        free(dedup->runs);
        free(dedup->dropped);
        free(dedup);
}

/*
 * Until a record confirms that the runs are of this log, compare with the last record that they have; but not
 * its identity, which depends on whether the record is genuine by the present configuration. Returns 0, or -1
 * if it is another log.
 */
static int
confirm(struct dedup *dedup, uint64_t body, int64_t offset, int64_t timestamp_ms)
{
        if (dedup->is_confirmed || offset < dedup->last.offset)
                return 0;
        dedup->is_confirmed = offset == dedup->last.offset && timestamp_ms == dedup->last.timestamp_ms &&
                              body == dedup->last.body;
        if (dedup->is_confirmed)
                return 0;
        dedup->trouble = DEDUP_OTHER_LOG;
        return -1;
}

/* Add what a part of the table knows. Returns whether the answer is final. */
static int
add_answer(enum dedup_answer *answer, enum dedup_answer part)
{
        if (part != DEDUP_NEW)
                *answer = part;
        return part == DEDUP_REPEAT;
}

int
dedup_find(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body, int64_t offset,
           int64_t timestamp_ms, enum dedup_answer *answer)
{
        struct dedup_question question = {.body = body,
                                          .offset = offset,
                                          .oldest_ms = bounded(timestamp_ms) - (int64_t)dedup->window_ms};
        enum dedup_answer part;

        *answer = DEDUP_NEW;
        if (dedup->trouble != DEDUP_SOUND || confirm(dedup, body, offset, timestamp_ms) != 0)
                return -1;
        memcpy(question.identity, identity, DEDUP_IDENTITY_SIZE);
        for (size_t i = 0; i < dedup->n_runs; i++)
                run_prefetch(dedup->runs[i], &question);
        if (add_answer(answer, slice_list_find(dedup->slices, &question)) ||
            (dedup->sealing != NULL && add_answer(answer, slice_list_find(dedup->sealing, &question))))
                return 0;
        for (size_t i = dedup->n_runs; i > 0; i--) {
                if (run_find(dedup->runs[i - 1], &question, &part) != 0) {
                        dedup->trouble = DEDUP_DAMAGED;
                        return -1;
                }
                if (add_answer(answer, part))
                        return 0;
        }
        return 0;
}

int
dedup_remember(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
               int64_t offset, int64_t timestamp_ms)
{
        if (dedup->trouble != DEDUP_SOUND || confirm(dedup, body, offset, timestamp_ms) != 0)
                return -1;
        if (offset < dedup->sealed_to)
                return 0;
        if (offset > dedup->last.offset) {
                dedup->last = (struct run_mark){offset, timestamp_ms, body, {0}};
                memcpy(dedup->last.identity, identity, DEDUP_IDENTITY_SIZE);
        }
        return slice_list_remember(dedup->slices, identity, body, offset, bounded(timestamp_ms));
}

int
dedup_check(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body, int64_t offset,
            int64_t timestamp_ms, enum dedup_answer *answer)
{
        return dedup_find(dedup, identity, body, offset, timestamp_ms, answer) != 0
                   ? -1
                   : dedup_remember(dedup, identity, body, offset, timestamp_ms);
}

int
dedup_covers(const struct dedup *dedup, int64_t timestamp_ms)
{
        return bounded(timestamp_ms) - (int64_t)dedup->window_ms >= dedup->complete_from_ms;
}

/* Note that a run is not needed any more, and take its reference. */
static void
drop(struct dedup *dedup, struct run *run)
{
        struct run **dropped = reallocarray(dedup->dropped, dedup->n_dropped + 1, sizeof(*dropped));

        if (dropped == NULL) {
                run_free(run); /* the next start deletes the file */
                return;
        }
        dedup->dropped = dropped;
        dropped[dedup->n_dropped++] = run;
}

/* Move runs from the list to those that are not needed. */
static void
drop_runs(struct dedup *dedup, size_t first, size_t n)
{
        for (size_t i = first; i < first + n; i++)
                drop(dedup, dedup->runs[i]);
        dedup->n_runs -= n;
        memmove(&dedup->runs[first], &dedup->runs[first + n], (dedup->n_runs - first) * sizeof(struct run *));
}

void
dedup_expire(struct dedup *dedup, int64_t timestamp_ms)
{
        int64_t oldest_kept_ms = dedup_restore_start(dedup->window_ms, timestamp_ms);
        size_t n = 0;

        if (dedup->complete_from_ms < oldest_kept_ms)
                dedup->complete_from_ms = oldest_kept_ms;
        slice_list_expire(dedup->slices, oldest_kept_ms);
        while (n < dedup->n_runs && run_header(dedup->runs[n])->most_ms < oldest_kept_ms)
                n++;
        if (n > 0)
                drop_runs(dedup, 0, n);
        /*
         * The first run may have a record of a clock that was far ahead, and be needed for as long. Do not
         * keep all of the others with it, although a restart cannot use runs that do not adjoin.
         */
        for (size_t i = dedup->n_runs; i > 1; i--) {
                if (run_header(dedup->runs[i - 1])->most_ms < oldest_kept_ms - (int64_t)dedup->window_ms)
                        drop_runs(dedup, i - 1, 1);
        }
}

struct run *
dedup_take_dropped(struct dedup *dedup)
{
        return dedup->n_dropped == 0 ? NULL : dedup->dropped[--dedup->n_dropped];
}

uint64_t
dedup_window_ms(const struct dedup *dedup)
{
        return dedup->window_ms;
}

size_t
dedup_size(const struct dedup *dedup)
{
        size_t n = slice_list_size(dedup->slices);

        if (dedup->sealing != NULL)
                n += slice_list_size(dedup->sealing);
        for (size_t i = 0; i < dedup->n_runs; i++)
                n += run_header(dedup->runs[i])->n_entries;
        return n;
}

uint64_t
dedup_number(const struct dedup *dedup)
{
        return dedup->number;
}

void
dedup_note_doubtful(struct dedup *dedup)
{
        dedup->has_doubtful = dedup->adds_doubtful = 1;
}

int
dedup_has_doubtful(const struct dedup *dedup)
{
        return dedup->has_doubtful;
}

enum dedup_trouble
dedup_trouble(const struct dedup *dedup)
{
        return dedup->trouble;
}

int64_t
dedup_restore_start(uint64_t window_ms, int64_t timestamp_ms)
{
        int64_t width = slice_width(window_ms);

        return slice_start(width, bounded(timestamp_ms) - (int64_t)window_ms - width);
}

int64_t
dedup_trusted_from(uint64_t window_ms, int64_t first_ms)
{
        return bounded(first_ms) + (int64_t)window_ms + 2 * slice_width(window_ms);
}

void
dedup_begin_at(struct dedup *dedup, int64_t offset)
{
        dedup->sealed_to = offset;
}

int
dedup_adopt(struct dedup *dedup, struct run *const *runs, size_t n)
{
        dedup->runs = calloc(n, sizeof(struct run *));
        if (dedup->runs == NULL)
                return -1;
        for (size_t i = 0; i < n; i++) {
                const struct run_range *range = &run_header(runs[i])->range;

                dedup->runs[i] = runs[i];
                if (range->complete_from_ms > dedup->complete_from_ms)
                        dedup->complete_from_ms = range->complete_from_ms;
                dedup->has_doubtful |= range->has_doubtful;
                dedup->sealed_to = range->to;
                dedup->last = range->last;
        }
        dedup->n_runs = n;
        dedup->before = dedup->last;
        dedup->is_confirmed = 0;
        return 0;
}

static int
is_due(const struct dedup *dedup, size_t at_least)
{
        size_t n = slice_list_size(dedup->slices);

        return n > 0 &&
               (n >= at_least || slice_list_start_ms(dedup->slices) + 2 * slice_width(dedup->window_ms) <=
                                     dedup->last.timestamp_ms);
}

/* Set the entries in memory apart, to be written, up to the last record. Returns whether there are any. */
static int
set_apart(struct dedup *dedup, int64_t below, size_t at_least)
{
        const int64_t to = dedup->last.offset + 1;
        struct slice_list *slices;

        if (to <= dedup->sealed_to || to > below || to - dedup->sealed_to > RUN_MAX_RECORDS ||
            !is_due(dedup, at_least))
                return 0;
        slices = slice_list_new(slice_width(dedup->window_ms));
        if (slices == NULL)
                return 0;
        dedup->sealing = dedup->slices;
        dedup->slices = slices;
        dedup->sealing_range = (struct run_range){.from = dedup->sealed_to,
                                                  .to = to,
                                                  .before = dedup->before,
                                                  .last = dedup->last,
                                                  .has_doubtful = dedup->adds_doubtful};
        dedup->adds_doubtful = 0;
        dedup->sealed_to = to;
        dedup->before = dedup->last;
        return 1;
}

int
dedup_seal(struct dedup *dedup, int64_t to, size_t at_least, struct dedup_seal *seal)
{
        if (dedup->is_writing || !dedup->is_confirmed || dedup->trouble != DEDUP_SOUND ||
            (dedup->sealing == NULL && !set_apart(dedup, to, at_least)))
                return 0;
        dedup->is_writing = 1;
        dedup->sealing_range.complete_from_ms = dedup->complete_from_ms;
        seal->slices = slice_list_hold(dedup->sealing);
        seal->range = dedup->sealing_range;
        return 1;
}

void
dedup_note_damage(struct dedup *dedup)
{
        dedup->trouble = DEDUP_DAMAGED;
}

void
dedup_end_seal(struct dedup *dedup, struct run *run)
{
        struct run **runs;

        dedup->is_writing = 0;
        if (run == NULL)
                return;
        runs = reallocarray(dedup->runs, dedup->n_runs + 1, sizeof(*runs));
        if (runs == NULL) {
                run_free(run);
                return;
        }
        dedup->runs = runs;
        runs[dedup->n_runs++] = run;
        slice_list_free(dedup->sealing);
        dedup->sealing = NULL;
}

size_t
dedup_plan_merge(struct dedup *dedup, struct run **runs, size_t max)
{
        size_t first, n = 0;

        if (!dedup->is_merging && dedup->trouble == DEDUP_SOUND)
                n = merge_plan(dedup->runs, dedup->n_runs, MERGED_SLICES * slice_width(dedup->window_ms), max,
                               &first);
        dedup->is_merging |= n > 0;
        for (size_t i = 0; i < n; i++)
                runs[i] = run_hold(dedup->runs[first + i]);
        return n;
}

void
dedup_end_merge(struct dedup *dedup, struct run *const *runs, size_t n, struct run *merged)
{
        size_t first = 0;

        dedup->is_merging = 0;
        if (merged == NULL)
                return;
        while (first < dedup->n_runs && dedup->runs[first] != runs[0])
                first++;
        if (first + n > dedup->n_runs || memcmp(&dedup->runs[first], runs, n * sizeof(struct run *)) != 0) {
                drop(dedup, merged); /* they have expired meanwhile */
                return;
        }
        drop_runs(dedup, first, n);
        memmove(&dedup->runs[first + 1], &dedup->runs[first],
                (dedup->n_runs - first) * sizeof(struct run *)); /* there is room for what was dropped */
        dedup->runs[first] = merged;
        dedup->n_runs++;
}

int
dedup_is_busy(const struct dedup *dedup)
{
        return dedup->is_writing || dedup->is_merging;
}

struct dedup_files
dedup_files(const struct dedup *dedup)
{
        struct dedup_files files = {.n = dedup->n_runs};

        for (size_t i = 0; i < dedup->n_runs; i++) {
                files.bytes += run_file_size(dedup->runs[i]);
                files.memory += run_memory(dedup->runs[i]);
        }
        return files;
}
