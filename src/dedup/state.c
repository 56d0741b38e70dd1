#include "dedup/state.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "base/process.h"
#include "dedup/run_writer.h"

#define MAX_MERGED 16
#define PAUSE_MS 10000 /* after a failure */

enum job_kind {
        JOB_SEAL,
        JOB_MERGE,
        JOB_REMOVE,
};

struct job {
        STAILQ_ENTRY(job) entry;
        enum job_kind kind;
        int32_t partition;
        uint64_t table; /* dedup_number() */
        struct dedup_seal seal;
        struct run *runs[MAX_MERGED]; /* references */
        size_t n_runs;
        struct run *result; /* NULL: it failed */
        int is_damaged;     /* one of the runs */
};

STAILQ_HEAD(job_list, job);

struct state {
        struct state_directory *directory;
        pthread_t thread;
        pthread_mutex_t mutex; /* protects the next two */
        struct job_list waiting;
        struct job_list done;
        pthread_cond_t work;
        atomic_int is_stopping;
        atomic_int_fast64_t failed_ms; /* monotonic: the last failure; 0: none */
        atomic_uint_fast64_t n_failures;
        struct log_flood failed;
        /* Partitions with files that were to be deleted, but could not be. The router's thread has them. */
        int32_t *distrusted;
        size_t n_distrusted;
};

static void
job_free(struct job *job)
{
        if (job->kind == JOB_SEAL)
                slice_list_free(job->seal.slices);
        for (size_t i = 0; i < job->n_runs; i++)
                run_free(job->runs[i]);
        run_free(job->result);
        free(job);
}

static void
note_failure(struct state *state, const struct job *job, const struct error *error)
{
        char quoted[LOG_QUOTED_SIZE];

        atomic_fetch_add(&state->n_failures, 1);
        atomic_store(&state->failed_ms, clock_monotonic_ms());
        log_flood(&state->failed, LOG_LEVEL_ERROR,
                  "the state of a partition cannot be written; it stays in memory partition=%" PRId32
                  " reason=%s",
                  job->partition, log_quote(error->text, quoted));
}

static void
seal(struct state *state, struct job *job)
{
        int directory = state_directory_fd(state->directory);
        struct dedup_entry *entries;
        struct error error;
        size_t n;

        job->seal.range.partition = job->partition;
        memcpy(job->seal.range.owner, state_directory_owner(state->directory), sizeof(job->seal.range.owner));
        entries = slice_list_sort(job->seal.slices, &n);
        if (entries == NULL)
                (void)error_set(&error, "out of memory");
        else
                job->result = run_write(directory, &job->seal.range, entries, n, &error);
        free(entries);
        if (job->result == NULL)
                note_failure(state, job, &error);
        else
                log_debug("the state was written file=%s entries=%zu", run_name(job->result), n);
}

static void
merge(struct state *state, struct job *job)
{
        struct error error;

        job->result = run_merge(state_directory_fd(state->directory), job->runs, job->n_runs,
                                &state->is_stopping, &job->is_damaged, &error);
        if (job->result == NULL && !atomic_load(&state->is_stopping))
                note_failure(state, job, &error);
        else if (job->result != NULL)
                log_debug("files of the state were merged file=%s files=%zu", run_name(job->result),
                          job->n_runs);
}

static void
work(struct state *state, struct job *job)
{
        switch (job->kind) {
        case JOB_SEAL:
                seal(state, job);
                crash_point("state-sealed");
                break;
        case JOB_MERGE:
                merge(state, job);
                crash_point("state-merged");
                break;
        case JOB_REMOVE:
                crash_point("state-removing");
                for (size_t i = 0; i < job->n_runs; i++)
                        state_directory_remove(state->directory, job->runs[i]);
                crash_point("state-removed");
                break;
        }
}

/* Take a job, after waiting for one. Returns NULL when there are no more and the state is closed. */
static struct job *
take_job(struct state *state)
{
        struct job *job;

        pthread_mutex_lock(&state->mutex);
        while (STAILQ_EMPTY(&state->waiting) && !atomic_load(&state->is_stopping))
                pthread_cond_wait(&state->work, &state->mutex);
        job = STAILQ_FIRST(&state->waiting);
        if (job != NULL)
                STAILQ_REMOVE_HEAD(&state->waiting, entry);
        pthread_mutex_unlock(&state->mutex);
        return job;
}

static void *
run(void *arg)
{
        struct state *state = arg;
        struct job *job;

        (void)pthread_setname_np(pthread_self(), "state");
        while ((job = take_job(state)) != NULL) {
                work(state, job);
                pthread_mutex_lock(&state->mutex);
                STAILQ_INSERT_TAIL(&state->done, job, entry);
                pthread_mutex_unlock(&state->mutex);
        }
        return NULL;
}

struct state *
state_open(const char *path, const char *topic, struct error *error)
{
        struct state *state = mem_alloc(sizeof(*state));

        process_raise_descriptors(); /* each run takes one */
        STAILQ_INIT(&state->waiting);
        STAILQ_INIT(&state->done);
        pthread_mutex_init(&state->mutex, NULL);
        pthread_cond_init(&state->work, NULL);
        state->directory = state_directory_open(path, topic, error);
        if (state->directory != NULL && pthread_create(&state->thread, NULL, run, state) == 0)
                return state;
        if (state->directory != NULL)
                (void)error_set(error, "cannot start a thread");
        state_directory_close(state->directory);
        free(state);
        return NULL;
}

static void
free_jobs(struct job_list *jobs)
{
        struct job *job;

        while ((job = STAILQ_FIRST(jobs)) != NULL) {
                STAILQ_REMOVE_HEAD(jobs, entry);
                job_free(job);
        }
}

void
state_close(struct state *state)
{
        if (state == NULL)
                return;
        pthread_mutex_lock(&state->mutex);
        atomic_store(&state->is_stopping, 1);
        pthread_cond_signal(&state->work);
        pthread_mutex_unlock(&state->mutex);
        (void)pthread_join(state->thread, NULL);
        free_jobs(&state->done);
        log_flood_end(&state->failed);
        free(state->distrusted);
        state_directory_close(state->directory);
        pthread_cond_destroy(&state->work);
        pthread_mutex_destroy(&state->mutex);
        free(state);
}

const uint8_t *
state_key(const struct state *state)
{
        return state_directory_key(state->directory);
}

/* Return the place of a partition among those that are distrusted, or their number. */
static size_t
find_distrusted(const struct state *state, int32_t partition)
{
        size_t i = 0;

        while (i < state->n_distrusted && state->distrusted[i] != partition)
                i++;
        return i;
}

void
state_discard(struct state *state, int32_t partition, const char *why)
{
        size_t place = find_distrusted(state, partition);
        int is_done;
        size_t n = state_directory_discard(state->directory, partition, &is_done);
        char quoted[LOG_QUOTED_SIZE];

        if (n > 0 || !is_done)
                log_warning("the state of a partition is not used and %s; the dedup table is read from "
                            "the log partition=%" PRId32 " files=%zu reason=%s",
                            is_done ? "is deleted" : "cannot be deleted", partition, n,
                            log_quote(why, quoted));
        if (is_done && place < state->n_distrusted) {
                state->distrusted[place] = state->distrusted[--state->n_distrusted];
        } else if (!is_done && place == state->n_distrusted) {
                state->distrusted = mem_resize(state->distrusted, place + 1, sizeof(*state->distrusted));
                state->distrusted[state->n_distrusted++] = partition;
        }
}

int
state_restore(struct state *state, const struct state_wanted *wanted, struct dedup *dedup, int64_t *next)
{
        const struct run_range *last;
        struct run **runs;
        int64_t from;
        size_t n;

        if (find_distrusted(state, wanted->partition) < state->n_distrusted) {
                state_discard(state, wanted->partition, "it could not be deleted before");
                return 0;
        }
        runs = state_directory_load(state->directory, wanted, &n);
        if (runs == NULL)
                return 0;
        crash_point("state-loading");
        if (dedup_adopt(dedup, runs, n) != 0) {
                for (size_t i = 0; i < n; i++)
                        run_free(runs[i]);
                free(runs);
                return 0;
        }
        from = run_header(runs[0])->range.from;
        last = &run_header(runs[n - 1])->range;
        *next = last->last.offset;
        log_info("the state was read partition=%" PRId32 " from=%" PRId64 " to=%" PRId64
                 " files=%zu entries=%zu",
                 wanted->partition, from, last->to, n, dedup_size(dedup));
        free(runs);
        crash_point("state-restored");
        return 1;
}

/* Return a new job, or NULL when out of memory. */
static struct job *
job_new(enum job_kind kind, int32_t partition, const struct dedup *dedup)
{
        struct job *job = calloc(1, sizeof(*job));

        if (job == NULL)
                return NULL;
        job->kind = kind;
        job->partition = partition;
        job->table = dedup_number(dedup);
        return job;
}

static void
submit(struct state *state, struct job *job)
{
        pthread_mutex_lock(&state->mutex);
        STAILQ_INSERT_TAIL(&state->waiting, job, entry);
        pthread_cond_signal(&state->work);
        pthread_mutex_unlock(&state->mutex);
}

/* Whether a failure is so recent that there is no use in another attempt. */
static int
has_failed(const struct state *state)
{
        int64_t failed_ms = atomic_load(&state->failed_ms);

        return failed_ms != 0 && clock_monotonic_ms() - failed_ms < PAUSE_MS;
}

static void
begin_seal(struct state *state, int32_t partition, struct dedup *dedup, int64_t to, size_t at_least)
{
        struct job *job;
        struct dedup_seal seal;

        if (!dedup_seal(dedup, to, at_least, &seal))
                return;
        job = job_new(JOB_SEAL, partition, dedup);
        if (job == NULL) {
                slice_list_free(seal.slices);
                dedup_end_seal(dedup, NULL);
                return;
        }
        job->seal = seal;
        submit(state, job);
}

static void
begin_merge(struct state *state, int32_t partition, struct dedup *dedup)
{
        struct run *runs[MAX_MERGED];
        size_t n = dedup_plan_merge(dedup, runs, MAX_MERGED);
        struct job *job = n == 0 ? NULL : job_new(JOB_MERGE, partition, dedup);

        if (job == NULL) {
                for (size_t i = 0; i < n; i++)
                        run_free(runs[i]);
                if (n > 0)
                        dedup_end_merge(dedup, runs, n, NULL);
                return;
        }
        memcpy(job->runs, runs, n * sizeof(*runs));
        job->n_runs = n;
        submit(state, job);
}

static void
begin_removal(struct state *state, int32_t partition, struct dedup *dedup)
{
        struct run *dropped;

        while ((dropped = dedup_take_dropped(dedup)) != NULL) {
                struct job *job = job_new(JOB_REMOVE, partition, dedup);

                if (job == NULL) {
                        run_free(dropped); /* the next start deletes the file */
                        return;
                }
                job->runs[job->n_runs++] = dropped;
                submit(state, job);
        }
}

void
state_tend(struct state *state, int32_t partition, struct dedup *dedup, int64_t to, size_t at_least)
{
        if (!has_failed(state)) {
                begin_seal(state, partition, dedup, to, at_least);
                begin_merge(state, partition, dedup);
        }
        begin_removal(state, partition, dedup);
}

/* Hand what a job made to its table. */
static void
deliver(struct job *job, struct dedup *dedup)
{
        crash_point("state-delivered");
        if (job->kind == JOB_SEAL) {
                dedup_end_seal(dedup, job->result);
        } else if (job->kind == JOB_MERGE) {
                dedup_end_merge(dedup, job->runs, job->n_runs, job->result);
                if (job->is_damaged)
                        dedup_note_damage(dedup);
        } else {
                return;
        }
        job->result = NULL;
}

void
state_take_results(struct state *state, state_table_finder *find, void *arg)
{
        struct job_list done = STAILQ_HEAD_INITIALIZER(done);
        struct job *job;

        pthread_mutex_lock(&state->mutex);
        STAILQ_CONCAT(&done, &state->done);
        pthread_mutex_unlock(&state->mutex);
        STAILQ_FOREACH(job, &done, entry)
        {
                struct dedup *dedup = find(arg, job->partition, job->table);

                if (dedup != NULL)
                        deliver(job, dedup);
        }
        free_jobs(&done);
}

uint64_t
state_failures(const struct state *state)
{
        return atomic_load(&state->n_failures);
}
