#include "http/connection_stats.h"

#include <stddef.h>

static const char *const names[HTTP_N_ENDS] = {
    [HTTP_END_CLOSED] = "closed",
    [HTTP_END_IDLE] = "idle",
    [HTTP_END_SLOW] = "slow",
    [HTTP_END_PROXY_HEADER] = "proxy_header",
    [HTTP_END_HANDSHAKE_FAILED] = "handshake_failed",
    [HTTP_END_HANDSHAKE_TIMEOUT] = "handshake_timeout",
    [HTTP_END_REFUSED] = "refused",
    [HTTP_END_MADE_ROOM] = "made_room",
    [HTTP_END_FULL] = "full",
    [HTTP_END_PER_ADDRESS] = "per_address",
    [HTTP_END_NO_PROXY] = "no_proxy",
    [HTTP_END_NO_DESCRIPTORS] = "no_descriptors",
};

const char *
http_end_name(enum http_end end)
{
        return names[end];
}

void
connection_stats_accepted(struct connection_stats *stats)
{
        if (stats != NULL)
                (void)atomic_fetch_add_explicit(&stats->accepted, 1, memory_order_relaxed);
}

void
connection_stats_ended(struct connection_stats *stats, enum http_end end)
{
        if (stats != NULL)
                (void)atomic_fetch_add_explicit(&stats->ended[end], 1, memory_order_relaxed);
}

uint64_t
connection_stats_open(const struct connection_stats *stats)
{
        uint64_t ended = 0, accepted;

        for (size_t i = 0; i < HTTP_N_ENDS; i++)
                ended += atomic_load(&stats->ended[i]);
        accepted = atomic_load(&stats->accepted);
        return accepted > ended ? accepted - ended : 0;
}
