#include "config/current.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

struct current {
        const struct config *first;
        pthread_mutex_t
            mutex; /* held from reading newest to holding it, so that it is not released between */
        _Atomic(const struct config *) newest;
};

struct current *
current_new(const struct config *config)
{
        struct current *current = mem_alloc(sizeof(*current));

        pthread_mutex_init(&current->mutex, NULL);
        current->first = config_hold(config);
        atomic_init(&current->newest, config_hold(config));
        return current;
}

void
current_free(struct current *current)
{
        if (current == NULL)
                return;
        config_free(atomic_load(&current->newest));
        config_free(current->first);
        pthread_mutex_destroy(&current->mutex);
        free(current);
}

const struct config *
current_first(const struct current *current)
{
        return current->first;
}

const struct config *
current_hold(struct current *current)
{
        const struct config *config;

        pthread_mutex_lock(&current->mutex);
        config = config_hold(atomic_load(&current->newest));
        pthread_mutex_unlock(&current->mutex);
        return config;
}

int
current_is(struct current *current, const struct config *config)
{
        return atomic_load(&current->newest) == config;
}

void
current_set(struct current *current, const struct config *config)
{
        const struct config *before;

        pthread_mutex_lock(&current->mutex);
        before = atomic_exchange(&current->newest, config_hold(config));
        pthread_mutex_unlock(&current->mutex);
        config_free(before);
}
