#include "daemon/status.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

static void
log_process(const struct parts *parts)
{
        char renewed[CLOCK_RFC3339_SIZE];

        log_notice("status of process uptime_s=%" PRId64 " descriptors=%ld generation=%" PRIu64
                   " configured=%s last_reload=%s",
                   (clock_monotonic_ms() - parts->started_ms) / 1000, metrics_open_descriptors(),
                   parts->n_renewals + 1, clock_format_ms(parts->renewed_ms, renewed),
                   parts->was_refused ? "refused" : "done");
}

static void
log_kafka(const struct parts *parts)
{
        static const char *const names[] = {[PROBE_STARTING] = "starting",
                                            [PROBE_REFUSED] = "refused",
                                            [PROBE_REACHABLE] = "reachable",
                                            [PROBE_AWAY] = "away",
                                            [PROBE_GONE] = "deliveries-deleted"};
        struct brokers brokers;
        size_t n_up = 0;

        probe_brokers(parts->probe, &brokers);
        for (size_t i = 0; i < brokers.n; i++)
                n_up += brokers.items[i].is_up != 0;
        log_notice("status of kafka state=%s brokers=%zu up=%zu", names[probe_state(parts->probe)], brokers.n,
                   n_up);
}

void
status_log(const struct parts *parts)
{
        log_process(parts);
        health_log(&parts->health);
        log_kafka(parts);
        if (parts->receiver != NULL)
                receiver_log_status(parts->receiver);
        if (parts->router != NULL)
                router_log_status(parts->router);
}
