#include "http/census.h"

#include <stddef.h>

static const char *const names[HTTP_N_ENDS] = {
    [HTTP_END_CLOSED] = "closed",
    [HTTP_END_IDLE] = "idle",
    [HTTP_END_SLOW] = "slow",
    [HTTP_END_HANDSHAKE_FAILED] = "handshake_failed",
    [HTTP_END_HANDSHAKE_TIMEOUT] = "handshake_timeout",
    [HTTP_END_REFUSED] = "refused",
    [HTTP_END_MADE_ROOM] = "made_room",
    [HTTP_END_FULL] = "full",
    [HTTP_END_PER_ADDRESS] = "per_address",
    [HTTP_END_NO_DESCRIPTORS] = "no_descriptors",
};

const char *
http_end_name(enum http_end end)
{
        return names[end];
}

void
http_census_accepted(struct http_census *census)
{
        if (census != NULL)
                (void)atomic_fetch_add_explicit(&census->accepted, 1, memory_order_relaxed);
}

void
http_census_ended(struct http_census *census, enum http_end end)
{
        if (census != NULL)
                (void)atomic_fetch_add_explicit(&census->ended[end], 1, memory_order_relaxed);
}

uint64_t
http_census_open(const struct http_census *census)
{
        uint64_t ended = 0, accepted;

        for (size_t i = 0; i < HTTP_N_ENDS; i++)
                ended += atomic_load(&census->ended[i]);
        accepted = atomic_load(&census->accepted);
        return accepted > ended ? accepted - ended : 0;
}
