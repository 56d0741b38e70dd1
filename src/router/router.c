#include "router/router.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "router/loop.h"

/* An iteration of the loop takes a tenth of a second; a commit that takes this long is stuck. */
#define STUCK_MS 5000

struct router {
        struct current *current;
        const char *bootstrap;
        struct metrics *metrics;
        struct probe *probe;
        void (*stopped)(void *arg);
        void *arg;
        struct loop_status status;
        atomic_int exit_status;
        atomic_int has_stopped;
        pthread_t thread;
};

/* Wait until the topics are verified. Returns 0 when the router is to stop instead. */
static int
wait_for_topics(struct router *router)
{
        while (!probe_has_verified(router->probe)) {
                heartbeat_beat(&router->status.heartbeat);
                if (atomic_load(&router->status.stopping))
                        return 0;
                clock_sleep_ms(20);
        }
        return 1;
}

/*
 * librdkafka allocates each header and each record by itself. With each allocation of a kilobyte or more,
 * glibc merges all small pieces that were freed since (malloc_consolidate()); without fast bins it merges
 * each when it is freed, which costs the router less.
 */
static void
prepare_malloc(void)
{
#ifdef M_MXFAST
        (void)mallopt(M_MXFAST, 0);
#endif
}

static void *
run(void *arg)
{
        struct router *router = arg;
        int status = 0;

        (void)pthread_setname_np(pthread_self(), "router");
        prepare_malloc();
        if (wait_for_topics(router))
                status = loop_run(router->current, router->bootstrap, router->metrics, &router->status);
        atomic_store(&router->exit_status, status);
        atomic_store(&router->has_stopped, 1);
        if (status != 0)
                router->stopped(router->arg);
        return NULL;
}

struct router *
router_new(struct current *current, const char *bootstrap, struct metrics *metrics, struct probe *probe,
           void (*stopped)(void *arg), void *arg, struct error *error)
{
        struct router *router = mem_alloc(sizeof(*router));

        router->current = current;
        router->bootstrap = bootstrap;
        router->metrics = metrics;
        router->probe = probe;
        router->stopped = stopped;
        router->arg = arg;
        pthread_mutex_init(&router->status.mutex, NULL);
        heartbeat_beat(&router->status.heartbeat);
        if (pthread_create(&router->thread, NULL, run, router) != 0) {
                (void)error_set(error, "cannot start the router's thread");
                free(router);
                return NULL;
        }
        return router;
}

/* Return what the loop waits for although Kafka is reachable, or NULL if it routes. */
static const char *
find_obstacle(struct router *router)
{
        if (atomic_load(&router->status.state) == LOOP_STARTING)
                return "not in the consumer group yet";
        if (atomic_load(&router->status.state) == LOOP_RESTORING)
                return "restoring the dedup table, or recovering";
        return heartbeat_age_ms(&router->status.heartbeat) > STUCK_MS ? "a commit takes long" : NULL;
}

int
router_is_ready(void *arg, char reason[HEALTH_REASON_SIZE])
{
        struct router *router = arg;
        const char *obstacle = find_obstacle(router);
        struct error trouble;

        if (atomic_load(&router->status.stopping)) {
                (void)snprintf(reason, HEALTH_REASON_SIZE, "stopping");
                return 0;
        }
        if (probe_reason(router->probe, reason))
                return 0;
        if (obstacle == NULL)
                return 1;
        pthread_mutex_lock(&router->status.mutex);
        trouble = router->status.trouble;
        pthread_mutex_unlock(&router->status.mutex);
        (void)snprintf(reason, HEALTH_REASON_SIZE, "%.*s", HEALTH_REASON_SIZE - 1,
                       trouble.text[0] == '\0' ? obstacle : trouble.text);
        return 0;
}

int
router_exit_status(const struct router *router)
{
        return atomic_load(&router->exit_status);
}

int
router_is_alive(struct router *router, int64_t limit_ms, char reason[HEALTH_REASON_SIZE])
{
        int is_alive = router_has_stopped(router) || heartbeat_is_alive(&router->status.heartbeat, limit_ms);

        if (!is_alive)
                (void)snprintf(reason, HEALTH_REASON_SIZE, "the router is stuck");
        return is_alive;
}

void
router_stop(struct router *router)
{
        atomic_store(&router->status.stopping, 1);
}

int
router_has_stopped(const struct router *router)
{
        return atomic_load(&router->has_stopped);
}

void
router_free(struct router *router)
{
        if (router == NULL)
                return;
        router_stop(router);
        process_join(router->thread, "router");
        free(router);
}
