#include "receiver/shared.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "receiver/capacity.h"

/* A quarter of a million accepted deliveries: 29 MB at most, and five minutes at 800 a second. */
#define REPLAY_ENTRIES (1u << 18)

struct receiver_shared *
receiver_shared_new(const struct config *config, const char *bootstrap, struct metrics *metrics)
{
        struct receiver_shared *shared = mem_alloc(sizeof(*shared));

        shared->config = config;
        shared->bootstrap = bootstrap;
        shared->metrics = metrics;
        shared->max_connections = capacity_connections(config);
        shared->room.max = config->max_in_flight;
        if (config->max_connections_per_address > 0 || config->max_refusals_per_address > 0)
                shared->clients =
                    clients_new(config->max_connections_per_address, config->max_refusals_per_address);
        pthread_mutex_init(&shared->replay_mutex, NULL);
        pthread_mutex_init(&shared->append_failed.mutex, NULL);
        shared->replay = replay_new(REPLAY_ENTRIES);
        shared->refused = mem_alloc((config->n_sources + 1) * sizeof(*shared->refused));
        for (size_t s = 0; s <= config->n_sources; s++) {
                for (size_t o = 0; o < OUTCOME_N; o++)
                        pthread_mutex_init(&shared->refused[s][o].mutex, NULL);
        }
        return shared;
}

void
receiver_shared_free(struct receiver_shared *shared)
{
        if (shared == NULL)
                return;
        replay_free(shared->replay);
        clients_free(shared->clients);
        free(shared->refused);
        tls_free(shared->tls);
        free(shared);
}

void
receiver_shared_refused(struct receiver_shared *shared, const struct receiver_refused *refused)
{
        const struct config_source *source = refused->source;
        size_t index =
            source == NULL ? shared->config->n_sources : (size_t)(source - shared->config->sources);
        enum metrics_outcome outcome = refused->outcome;
        char client[ADDRESS_TEXT_SIZE];
        uint64_t n;

        metrics_count_request(shared->metrics, source, outcome);
        if (shared->clients != NULL && refused->status < 500 && outcome != OUTCOME_THROTTLED)
                clients_count_refusal(shared->clients, &refused->client, clock_monotonic_ms());
        if (!log_flood_pass(&shared->refused[index][outcome], &n))
                return;
        log_line(outcome == OUTCOME_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_NOTICE,
                 "refused source=%s outcome=%s status=%d n=%" PRIu64 " last_client=%s last_request=%s",
                 source == NULL ? "-" : source->name, metrics_outcome_name(outcome), refused->status, n,
                 address_format(&refused->client, client),
                 refused->request_id == NULL ? "-" : refused->request_id);
}

int
receiver_shared_is_replay(struct receiver_shared *shared, const struct config_source *source,
                          const struct delivery *delivery, int64_t now_ms, char original[DELIVERY_ID_MAX + 1])
{
        int64_t stale_ms = delivery->timestamp * 1000 + (int64_t)source->tolerance_ms + 1000;
        int is_replay;

        if (!source->replay_guard || shared->replay == NULL)
                return 0;
        pthread_mutex_lock(&shared->replay_mutex);
        is_replay = replay_check(shared->replay, delivery->signature, delivery->delivery_id, now_ms, stale_ms,
                                 original);
        pthread_mutex_unlock(&shared->replay_mutex);
        return is_replay;
}
