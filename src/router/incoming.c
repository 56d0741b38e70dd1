#include "router/incoming.h"

int64_t
incoming_lag(const struct consumer *consumer, const char *topic, const struct partition *partition)
{
        int64_t low, high;

        if (rd_kafka_get_watermark_offsets(consumer_client(consumer), topic, partition->id, &low, &high) !=
            RD_KAFKA_RESP_ERR_NO_ERROR)
                return 0;
        return high > partition->decide_from ? high - partition->decide_from : 0;
}
