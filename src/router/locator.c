#include "router/locator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"

#define LOOK_INTERVAL_S 5

struct locator {
        const struct config *config;
        struct log_query *query;
        pthread_t thread;
        pthread_mutex_t mutex; /* over all that follows */
        pthread_cond_t wake;
        int stopping;
        struct position_question *questions; /* NULL: none; n of them */
        struct position *positions;          /* the answers; NULL: none yet */
        size_t n;
        struct locator_unassigned *unassigned;
        size_t n_unassigned;
        int n_looks;
        int n_assigned; /* to this router */
        int32_t n_partitions;
};

/* Wait for questions or the next look. Returns the questions, which remain the locator's, or NULL. */
static const struct position_question *
wait_for_work(struct locator *locator, struct timespec *next_look, int *stopping)
{
        const struct position_question *questions = NULL;
        int timed_out = 0;

        pthread_mutex_lock(&locator->mutex);
        while (!locator->stopping && !timed_out) {
                if (locator->questions != NULL && locator->positions == NULL) {
                        questions = locator->questions;
                        break;
                }
                timed_out =
                    pthread_cond_clockwait(&locator->wake, &locator->mutex, CLOCK_MONOTONIC, next_look) != 0;
        }
        *stopping = locator->stopping;
        pthread_mutex_unlock(&locator->mutex);
        return questions;
}

static void
answer(struct locator *locator, const struct position_question *questions)
{
        struct position *positions = mem_alloc(locator->n * sizeof(*positions));
        int32_t n_partitions;

        position_find(locator->query, locator->config, questions, locator->n, positions, &n_partitions);
        pthread_mutex_lock(&locator->mutex);
        locator->positions = positions;
        if (n_partitions >= 0)
                locator->n_partitions = n_partitions;
        pthread_mutex_unlock(&locator->mutex);
}

/* How many records wait in partitions that nobody has. */
static void
count_waiting(struct locator *locator, struct locator_unassigned *unassigned, size_t n, int32_t n_partitions)
{
        struct position_question *questions = mem_alloc(n * sizeof(*questions));
        struct position *positions = mem_alloc(n * sizeof(*positions));

        for (size_t i = 0; i < n; i++)
                questions[i] = (struct position_question){.partition = unassigned[i].partition,
                                                          .needed_ms = INT64_MAX,
                                                          .diverged_at = -1};
        position_find(locator->query, locator->config, questions, n, positions, &n_partitions);
        for (size_t i = 0; i < n; i++) {
                if (positions[i].high > positions[i].decide_from)
                        unassigned[i].waiting = positions[i].high - positions[i].decide_from;
        }
        free(questions);
        free(positions);
}

/* Look which partitions nobody has. Returns 1, or 0 when that cannot be said now. */
static int
look(struct locator *locator, int n_assigned, struct locator_unassigned **unassigned, size_t *n,
     int32_t *n_partitions)
{
        struct error error;
        uint8_t *is_assigned;
        int is_known;

        *n = 0;
        *unassigned = NULL;
        if (log_query_leaders(locator->query, NULL, 0, n_partitions, &error) != 0)
                return 0;
        if (n_assigned >= *n_partitions)
                return 1; /* this router has all of them */
        is_assigned = mem_alloc((size_t)*n_partitions);
        is_known = log_query_assigned(locator->query, is_assigned, *n_partitions);
        for (int32_t p = 0; is_known && p < *n_partitions; p++) {
                if (is_assigned[p])
                        continue;
                *unassigned = mem_resize(*unassigned, *n + 1, sizeof(**unassigned));
                (*unassigned)[(*n)++] = (struct locator_unassigned){p, 0};
        }
        free(is_assigned);
        if (*n > 0)
                count_waiting(locator, *unassigned, *n, *n_partitions);
        return is_known;
}

static void
look_around(struct locator *locator)
{
        struct locator_unassigned *unassigned;
        int32_t n_partitions = -1;
        size_t n;
        int n_assigned, is_known;

        pthread_mutex_lock(&locator->mutex);
        n_assigned = locator->n_assigned;
        pthread_mutex_unlock(&locator->mutex);
        is_known = look(locator, n_assigned, &unassigned, &n, &n_partitions);
        pthread_mutex_lock(&locator->mutex);
        if (n_partitions >= 0)
                locator->n_partitions = n_partitions;
        if (is_known) {
                free(locator->unassigned);
                locator->unassigned = unassigned;
                locator->n_unassigned = n;
                locator->n_looks = n > 0 ? locator->n_looks + 1 : 0;
        }
        pthread_mutex_unlock(&locator->mutex);
}

static void *
run(void *arg)
{
        struct locator *locator = arg;
        struct timespec next_look;
        int stopping = 0;

        (void)pthread_setname_np(pthread_self(), "locator");
        (void)clock_gettime(CLOCK_MONOTONIC, &next_look);
        next_look.tv_sec += LOOK_INTERVAL_S;
        while (!stopping) {
                const struct position_question *questions = wait_for_work(locator, &next_look, &stopping);

                if (stopping)
                        break;
                if (questions != NULL) {
                        answer(locator, questions);
                        continue;
                }
                look_around(locator);
                (void)clock_gettime(CLOCK_MONOTONIC, &next_look);
                next_look.tv_sec += LOOK_INTERVAL_S;
        }
        return NULL;
}

struct locator *
locator_new(const struct config *config, const char *bootstrap, struct error *error)
{
        struct locator *locator = mem_alloc(sizeof(*locator));

        locator->config = config;
        locator->n_partitions = -1;
        pthread_mutex_init(&locator->mutex, NULL);
        pthread_cond_init(&locator->wake, NULL);
        locator->query = log_query_new(config, bootstrap, error);
        if (locator->query == NULL || pthread_create(&locator->thread, NULL, run, locator) != 0) {
                if (locator->query != NULL)
                        (void)error_set(error, "cannot start a thread");
                log_query_free(locator->query);
                free(locator);
                return NULL;
        }
        return locator;
}

void
locator_free(struct locator *locator)
{
        if (locator == NULL)
                return;
        log_query_stop(locator->query);
        pthread_mutex_lock(&locator->mutex);
        locator->stopping = 1;
        pthread_cond_signal(&locator->wake);
        pthread_mutex_unlock(&locator->mutex);
        thread_join(locator->thread, "locator");
        log_query_free(locator->query);
        free(locator->questions);
        free(locator->positions);
        free(locator->unassigned);
        free(locator);
}

int
locator_is_busy(struct locator *locator)
{
        int is_busy;

        pthread_mutex_lock(&locator->mutex);
        is_busy = locator->questions != NULL;
        pthread_mutex_unlock(&locator->mutex);
        return is_busy;
}

void
locator_ask(struct locator *locator, const struct position_question *questions, size_t n)
{
        pthread_mutex_lock(&locator->mutex);
        locator->questions = mem_alloc(n * sizeof(*questions));
        memcpy(locator->questions, questions, n * sizeof(*questions));
        locator->n = n;
        pthread_cond_signal(&locator->wake);
        pthread_mutex_unlock(&locator->mutex);
}

struct position *
locator_take(struct locator *locator, size_t *n)
{
        struct position *positions;

        pthread_mutex_lock(&locator->mutex);
        positions = locator->positions;
        *n = locator->n;
        if (positions != NULL) {
                free(locator->questions);
                locator->questions = NULL;
                locator->positions = NULL;
        }
        pthread_mutex_unlock(&locator->mutex);
        return positions;
}

void
locator_set_assigned(struct locator *locator, int n)
{
        pthread_mutex_lock(&locator->mutex);
        locator->n_assigned = n;
        pthread_mutex_unlock(&locator->mutex);
}

struct locator_unassigned *
locator_unassigned(struct locator *locator, size_t *n, int *n_looks, int32_t *n_partitions)
{
        struct locator_unassigned *copy = NULL;

        pthread_mutex_lock(&locator->mutex);
        *n = locator->n_unassigned;
        *n_looks = locator->n_looks;
        *n_partitions = locator->n_partitions;
        if (*n > 0) {
                copy = mem_alloc(*n * sizeof(*copy));
                memcpy(copy, locator->unassigned, *n * sizeof(*copy));
        }
        pthread_mutex_unlock(&locator->mutex);
        return copy;
}
