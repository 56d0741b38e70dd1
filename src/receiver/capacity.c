#include "receiver/capacity.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "base/log.h"

/* A lane's connection to each broker, the router's, the log, the event loops; with a dozen brokers about 100. */
#define OTHERS_NEED 128

/* Each further lane: an event loop, and a client of Kafka's with three descriptors a broker; with a dozen brokers about 45. */
#define LANE_NEEDS 48

uint64_t
capacity_connections(const struct config *config, uint64_t n_lanes)
{
        uint64_t others = OTHERS_NEED + (n_lanes - 1) * (LANE_NEEDS + config->n_listen);
        uint64_t wanted = config->max_connections + others;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
                return config->max_connections;
        if (limit.rlim_cur < wanted) {
                limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
                (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
        if (limit.rlim_cur >= wanted)
                return config->max_connections;
        if (others > limit.rlim_cur / 2)
                others = limit.rlim_cur / 2;
        log_warning("fewer connections than max_connections: the limit of descriptors is too low "
                    "max_connections=%" PRIu64 " descriptors=%" PRIu64 " connections=%" PRIu64
                    " remedy=\"LimitNOFILE= in the unit, or ulimit -n, of %" PRIu64 "\"",
                    config->max_connections, (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_cur - others,
                    wanted);
        return limit.rlim_cur - others;
}
