#include "router/position_finder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/process.h"

#define LOOK_INTERVAL_S 5

struct position_finder {
        const struct config *config;
        struct log_query *query;
        int looks;
        pthread_t thread;
        pthread_mutex_t mutex; /* protects all that follows */
        pthread_cond_t wake;
        int stopping;
        struct position_question *questions; /* NULL: none; n of them */
        struct position *positions;          /* the answers; NULL: none yet */
        size_t n;
        int n_assigned; /* to this router */
        int32_t n_partitions;
        struct topic_view view; /* of the last look */
};

/* Wait for questions or the next look. Returns the questions, which the finder keeps, or NULL. */
static const struct position_question *
wait_for_work(struct position_finder *finder, struct timespec *next_look, int *stopping)
{
        const struct position_question *questions = NULL;
        int timed_out = 0;

        pthread_mutex_lock(&finder->mutex);
        while (!finder->stopping && !timed_out) {
                if (finder->questions != NULL && finder->positions == NULL) {
                        questions = finder->questions;
                        break;
                }
                timed_out =
                    pthread_cond_clockwait(&finder->wake, &finder->mutex, CLOCK_MONOTONIC, next_look) != 0;
        }
        *stopping = finder->stopping;
        pthread_mutex_unlock(&finder->mutex);
        return questions;
}

static void
answer(struct position_finder *finder, const struct position_question *questions)
{
        struct position *positions = mem_alloc(finder->n * sizeof(*positions));
        int32_t n_partitions;

        position_find(finder->query, finder->config, questions, finder->n, positions, &n_partitions);
        pthread_mutex_lock(&finder->mutex);
        finder->positions = positions;
        if (n_partitions >= 0)
                finder->n_partitions = n_partitions;
        pthread_mutex_unlock(&finder->mutex);
}

/* Count the records that wait in unassigned partitions. */
static void
count_waiting(struct position_finder *finder, struct unassigned_partition *unassigned, size_t n)
{
        int32_t n_partitions;
        struct position_question *questions = mem_alloc(n * sizeof(*questions));
        struct position *positions = mem_alloc(n * sizeof(*positions));

        for (size_t i = 0; i < n; i++)
                questions[i] = (struct position_question){.partition = unassigned[i].partition,
                                                          .needed_ms = INT64_MAX,
                                                          .diverged_at = -1,
                                                          .bare_offset = -1};
        position_find(finder->query, finder->config, questions, n, positions, &n_partitions);
        for (size_t i = 0; i < n; i++) {
                if (positions[i].high > positions[i].decide_from)
                        unassigned[i].waiting = positions[i].high - positions[i].decide_from;
        }
        free(questions);
        free(positions);
}

/* Find the unassigned partitions. Returns 1, or 0 when they cannot be determined now. */
static int
find_unassigned(struct position_finder *finder, int n_assigned, struct topic_view *view)
{
        uint8_t *is_assigned;
        int is_known;

        if (n_assigned >= view->n_partitions)
                return 1; /* this router has all of them */
        is_assigned = mem_alloc((size_t)view->n_partitions);
        is_known = log_query_assigned(finder->query, is_assigned, view->n_partitions);
        for (int32_t p = 0; is_known && p < view->n_partitions; p++) {
                if (is_assigned[p])
                        continue;
                view->unassigned =
                    mem_resize(view->unassigned, view->n_unassigned + 1, sizeof(*view->unassigned));
                view->unassigned[view->n_unassigned++] = (struct unassigned_partition){p, 0};
        }
        free(is_assigned);
        if (view->n_unassigned > 0)
                count_waiting(finder, view->unassigned, view->n_unassigned);
        return is_known;
}

/* Request the number of partitions, and the leaders and log ends of the first n_known. Returns 0 or -1. */
static int
find_logs(struct position_finder *finder, int32_t n_known, struct topic_view *view)
{
        size_t n = n_known > 0 ? (size_t)n_known : 0;
        struct log_query_item *items = mem_alloc((n + 1) * sizeof(*items));
        struct error error;
        int result;

        for (size_t i = 0; i < n; i++) {
                items[i].partition = (int32_t)i;
                items[i].offset = LOG_QUERY_LATEST;
        }
        result = log_query_leaders(finder->query, items, n, &view->n_partitions, &error);
        if (result == 0 && n > 0) {
                log_query_offsets(finder->query, items, n);
                view->logs = mem_alloc(n * sizeof(*view->logs));
                view->n_logs = n;
        }
        for (size_t i = 0; i < view->n_logs; i++)
                view->logs[i] = (struct partition_log){items[i].leader >= 0,
                                                       items[i].error.text[0] == '\0' ? items[i].offset : -1};
        free(items);
        return result;
}

static void
look_around(struct position_finder *finder)
{
        struct topic_view found = {.n_partitions = -1}, before;
        int32_t n_known;
        int n_assigned;

        pthread_mutex_lock(&finder->mutex);
        n_assigned = finder->n_assigned;
        n_known = finder->n_partitions;
        pthread_mutex_unlock(&finder->mutex);
        if (find_logs(finder, n_known, &found) != 0)
                return;
        if (!find_unassigned(finder, n_assigned, &found))
                found.n_looks = -1;
        pthread_mutex_lock(&finder->mutex);
        before = finder->view;
        if (found.n_looks < 0) { /* unknown: keep the previous findings */
                found.unassigned = before.unassigned;
                found.n_unassigned = before.n_unassigned;
                found.n_looks = before.n_looks;
                before.unassigned = NULL;
        } else if (found.n_unassigned > 0) {
                found.n_looks = before.n_looks + 1;
        }
        finder->n_partitions = found.n_partitions;
        found.number = before.number + 1;
        finder->view = found;
        pthread_mutex_unlock(&finder->mutex);
        topic_view_clear(&before);
}

static void *
run(void *arg)
{
        struct position_finder *finder = arg;
        struct timespec next_look;
        int stopping = 0;

        (void)pthread_setname_np(pthread_self(), "finder");
        (void)clock_gettime(CLOCK_MONOTONIC, &next_look);
        next_look.tv_sec += LOOK_INTERVAL_S;
        while (!stopping) {
                const struct position_question *questions = wait_for_work(finder, &next_look, &stopping);

                if (stopping)
                        break;
                if (questions != NULL) {
                        answer(finder, questions);
                        continue;
                }
                if (finder->looks)
                        look_around(finder);
                (void)clock_gettime(CLOCK_MONOTONIC, &next_look);
                next_look.tv_sec += LOOK_INTERVAL_S;
        }
        return NULL;
}

struct position_finder *
position_finder_new(const struct config *config, const char *bootstrap, int looks, struct error *error)
{
        struct position_finder *finder = mem_alloc(sizeof(*finder));

        finder->config = config;
        finder->looks = looks;
        finder->n_partitions = -1;
        pthread_mutex_init(&finder->mutex, NULL);
        pthread_cond_init(&finder->wake, NULL);
        finder->query = log_query_new(config, bootstrap, error);
        if (finder->query == NULL || pthread_create(&finder->thread, NULL, run, finder) != 0) {
                if (finder->query != NULL)
                        (void)error_set(error, "cannot start a thread");
                log_query_free(finder->query);
                free(finder);
                return NULL;
        }
        return finder;
}

void
position_finder_free(struct position_finder *finder)
{
        if (finder == NULL)
                return;
        log_query_stop(finder->query);
        pthread_mutex_lock(&finder->mutex);
        finder->stopping = 1;
        pthread_cond_signal(&finder->wake);
        pthread_mutex_unlock(&finder->mutex);
        process_join(finder->thread, "finder");
        log_query_free(finder->query);
        free(finder->questions);
        free(finder->positions);
        topic_view_clear(&finder->view);
        free(finder);
}

int
position_finder_is_busy(struct position_finder *finder)
{
        int is_busy;

        pthread_mutex_lock(&finder->mutex);
        is_busy = finder->questions != NULL;
        pthread_mutex_unlock(&finder->mutex);
        return is_busy;
}

void
position_finder_ask(struct position_finder *finder, const struct position_question *questions, size_t n)
{
        pthread_mutex_lock(&finder->mutex);
        finder->questions = mem_alloc(n * sizeof(*questions));
        memcpy(finder->questions, questions, n * sizeof(*questions));
        finder->n = n;
        pthread_cond_signal(&finder->wake);
        pthread_mutex_unlock(&finder->mutex);
}

struct position *
position_finder_take(struct position_finder *finder, size_t *n)
{
        struct position *positions;

        pthread_mutex_lock(&finder->mutex);
        positions = finder->positions;
        *n = finder->n;
        if (positions != NULL) {
                free(finder->questions);
                finder->questions = NULL;
                finder->positions = NULL;
        }
        pthread_mutex_unlock(&finder->mutex);
        return positions;
}

void
position_finder_set_assigned(struct position_finder *finder, int n)
{
        pthread_mutex_lock(&finder->mutex);
        finder->n_assigned = n;
        pthread_mutex_unlock(&finder->mutex);
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
position_finder_view(struct position_finder *finder, struct topic_view *view)
{
        pthread_mutex_lock(&finder->mutex);
        *view = finder->view;
        view->n_partitions = finder->n_partitions;
        view->logs = copy(view->logs, view->n_logs, sizeof(*view->logs));
        view->unassigned = copy(view->unassigned, view->n_unassigned, sizeof(*view->unassigned));
        pthread_mutex_unlock(&finder->mutex);
}

void
topic_view_clear(struct topic_view *view)
{
        free(view->logs);
        free(view->unassigned);
}
