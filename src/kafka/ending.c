#include "kafka/ending.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"

#define PATIENCE_S 5
#define REPORT_PATIENCE_MS 1000 /* with reports on what was given up, which come within milliseconds */
#define REPORT_POLL_MS 100

int
ending_purge(rd_kafka_t *client)
{
        int64_t until = clock_monotonic_ms() + REPORT_PATIENCE_MS;
        int left;

        (void)rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                         RD_KAFKA_PURGE_F_NON_BLOCKING);
        while ((left = rd_kafka_outq_len(client)) > 0 && clock_monotonic_ms() < until)
                (void)rd_kafka_poll(client, REPORT_POLL_MS);
        return left;
}

static void *
end(void *client)
{
        rd_kafka_destroy(client);
        return NULL;
}

int
ending_destroy_within(rd_kafka_t *client, int seconds)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, end, client) != 0) {
                rd_kafka_destroy(client);
        } else if (process_join_within(thread, seconds) != 0) {
                (void)pthread_detach(thread);
                log_warning("a client of librdkafka does not shut down; leaking it waited_seconds=%d",
                            seconds);
                return -1;
        }
        return 0;
}

int
ending_destroy(rd_kafka_t *client)
{
        return ending_destroy_within(client, PATIENCE_S);
}
