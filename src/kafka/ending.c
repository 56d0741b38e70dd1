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
ending_destroy(rd_kafka_t *client)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, end, client) != 0) {
                rd_kafka_destroy(client);
        } else if (thread_join_within(thread, PATIENCE_S) != 0) {
                (void)pthread_detach(thread);
                log_warning("a client of librdkafka did not shut down within %d s; leaking it", PATIENCE_S);
                return -1;
        }
        return 0;
}
