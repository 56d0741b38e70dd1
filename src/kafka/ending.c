#include "kafka/ending.h"

#include <pthread.h>

#include "base/log.h"
#include "base/thread.h"

#define PATIENCE_S 5

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
        } else if (thread_join_within(thread, seconds) != 0) {
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
