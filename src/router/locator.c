#include "router/locator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/process.h"

#define LOOK_INTERVAL_S 5

struct locator {
        const struct config *config;
        struct log_query *query;
        pthread_t thread;
        pthread_mutex_t mutex; /* protects all that follows */
        pthread_cond_t wake;
        int stopping;
        struct position_question *questions; /* NULL: none; n of them */
        struct position *positions;          /* the answers; NULL: none yet */
        size_t n;
        int n_assigned; /* to this router */
        int32_t n_partitions;
        struct locator_view view; /* of the last look */
};

/* Wait for questions or the next look. Returns the questions, which the locator keeps, or NULL. */
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

/* Count the records that wait in unassigned partitions. */
static void
count_waiting(struct locator *locator, struct locator_unassigned *unassigned, size_t n)
{
        int32_t n_partitions;
        struct position_question *questions = mem_alloc(n * sizeof(*questions));
        struct position *positions = mem_alloc(n * sizeof(*positions));

        for (size_t i = 0; i < n; i++)
                questions[i] = (struct position_question){.partition = unassigned[i].partition,
                                                          .needed_ms = INT64_MAX,
                                                          .diverged_at = -1,
                                                          .bare_offset = -1};
        position_find(locator->query, locator->config, questions, n, positions, &n_partitions);
        for (size_t i = 0; i < n; i++) {
                if (positions[i].high > positions[i].decide_from)
                        unassigned[i].waiting = positions[i].high - positions[i].decide_from;
        }
        free(questions);
        free(positions);
}

/* Find the unassigned partitions. Returns 1, or 0 when they cannot be determined now. */
static int
find_unassigned(struct locator *locator, int n_assigned, struct locator_view *view)
{
        uint8_t *is_assigned;
        int is_known;

        if (n_assigned >= view->n_partitions)
                return 1; /* this router has all of them */
        is_assigned = mem_alloc((size_t)view->n_partitions);
        is_known = log_query_assigned(locator->query, is_assigned, view->n_partitions);
        for (int32_t p = 0; is_known && p < view->n_partitions; p++) {
                if (is_assigned[p])
                        continue;
                view->unassigned =
                    mem_resize(view->unassigned, view->n_unassigned + 1, sizeof(*view->unassigned));
                view->unassigned[view->n_unassigned++] = (struct locator_unassigned){p, 0};
        }
        free(is_assigned);
        if (view->n_unassigned > 0)
                count_waiting(locator, view->unassigned, view->n_unassigned);
        return is_known;
}

/* Request the number of partitions, and the leaders and log ends of the first n_known. Returns 0 or -1. */
static int
find_logs(struct locator *locator, int32_t n_known, struct locator_view *view)
{
        size_t n = n_known > 0 ? (size_t)n_known : 0;
        struct log_query_item *items = mem_alloc((n + 1) * sizeof(*items));
        struct error error;
        int result;

        for (size_t i = 0; i < n; i++) {
                items[i].partition = (int32_t)i;
                items[i].offset = LOG_QUERY_LATEST;
        }
        result = log_query_leaders(locator->query, items, n, &view->n_partitions, &error);
        if (result == 0 && n > 0) {
                log_query_offsets(locator->query, items, n);
                view->logs = mem_alloc(n * sizeof(*view->logs));
                view->n_logs = n;
        }
        for (size_t i = 0; i < view->n_logs; i++)
                view->logs[i] = (struct locator_log){items[i].leader >= 0,
                                                     items[i].error.text[0] == '\0' ? items[i].offset : -1};
        free(items);
        return result;
}

static void
look_around(struct locator *locator)
{
        struct locator_view found = {.n_partitions = -1}, before;
        int32_t n_known;
        int n_assigned;

        pthread_mutex_lock(&locator->mutex);
        n_assigned = locator->n_assigned;
        n_known = locator->n_partitions;
        pthread_mutex_unlock(&locator->mutex);
        if (find_logs(locator, n_known, &found) != 0)
                return;
        if (!find_unassigned(locator, n_assigned, &found))
                found.n_looks = -1;
        pthread_mutex_lock(&locator->mutex);
        before = locator->view;
        if (found.n_looks < 0) { /* unknown: keep the previous findings */
                found.unassigned = before.unassigned;
                found.n_unassigned = before.n_unassigned;
                found.n_looks = before.n_looks;
                before.unassigned = NULL;
        } else if (found.n_unassigned > 0) {
                found.n_looks = before.n_looks + 1;
        }
        locator->n_partitions = found.n_partitions;
        found.number = before.number + 1;
        locator->view = found;
        pthread_mutex_unlock(&locator->mutex);
        locator_view_clear(&before);
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
        process_join(locator->thread, "locator");
        log_query_free(locator->query);
        free(locator->questions);
        free(locator->positions);
        locator_view_clear(&locator->view);
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

/* Return a copy of n items, NULL for none. */
static void *
copy(const void *items, size_t n, size_t size)
{
        void *copied = items == NULL || n == 0 ? NULL : mem_alloc(n * size);

        if (copied != NULL)
                memcpy(copied, items, n * size);
        return copied;
}

void
locator_view(struct locator *locator, struct locator_view *view)
{
        pthread_mutex_lock(&locator->mutex);
        *view = locator->view;
        view->n_partitions = locator->n_partitions;
        view->logs = copy(view->logs, view->n_logs, sizeof(*view->logs));
        view->unassigned = copy(view->unassigned, view->n_unassigned, sizeof(*view->unassigned));
        pthread_mutex_unlock(&locator->mutex);
}

void
locator_view_clear(struct locator_view *view)
{
        free(view->logs);
        free(view->unassigned);
}
