#include "kafka/ending.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"

#define PATIENCE_S 5

/* The end of a client, in a thread of its own. Who is last frees it: that thread, or who waits for it. */
struct ending {
        rd_kafka_t *client;
        pthread_mutex_t mutex;
        pthread_cond_t ended;
        int has_ended;
        int is_left; /* nobody waits any more */
};

static void
free_ending(struct ending *ending)
{
        pthread_cond_destroy(&ending->ended);
        pthread_mutex_destroy(&ending->mutex);
        free(ending);
}

static void *
end(void *arg)
{
        struct ending *ending = arg;
        int is_left;

        rd_kafka_destroy(ending->client);
        pthread_mutex_lock(&ending->mutex);
        ending->has_ended = 1;
        is_left = ending->is_left;
        pthread_cond_signal(&ending->ended);
        pthread_mutex_unlock(&ending->mutex);
        if (is_left)
                free_ending(ending);
        return NULL;
}

/* Returns whether it has ended in time. */
static int
wait_for_end(struct ending *ending)
{
        struct timespec until;
        int has_ended, waited = 0;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PATIENCE_S;
        pthread_mutex_lock(&ending->mutex);
        while (!ending->has_ended && waited == 0)
                waited = pthread_cond_clockwait(&ending->ended, &ending->mutex, CLOCK_MONOTONIC, &until);
        has_ended = ending->has_ended;
        ending->is_left = !has_ended;
        pthread_mutex_unlock(&ending->mutex);
        return has_ended;
}

void
ending_destroy(rd_kafka_t *client)
{
        struct ending *ending = mem_alloc(sizeof(*ending));
        pthread_t thread;

        ending->client = client;
        pthread_mutex_init(&ending->mutex, NULL);
        pthread_cond_init(&ending->ended, NULL);
        if (pthread_create(&thread, NULL, end, ending) != 0) {
                rd_kafka_destroy(client);
                free_ending(ending);
        } else if (wait_for_end(ending)) {
                (void)pthread_join(thread, NULL);
                free_ending(ending);
        } else {
                (void)pthread_detach(thread);
                log_warning("a consumer of librdkafka does not end, and is left behind");
        }
}
