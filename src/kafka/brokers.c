#include "kafka/brokers.h"

#include <string.h>

static uint64_t
rtt_of(const struct brokers *brokers, const char *name)
{
        for (size_t i = 0; i < brokers->n; i++) {
                if (strcmp(brokers->items[i].name, name) == 0)
                        return brokers->items[i].rtt_us;
        }
        return 0;
}

void
brokers_keep_rtt(struct brokers *now, const struct brokers *before)
{
        for (size_t i = 0; i < now->n; i++) {
                if (now->items[i].rtt_us == 0)
                        now->items[i].rtt_us = rtt_of(before, now->items[i].name);
        }
}
