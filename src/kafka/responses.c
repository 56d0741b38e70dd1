#include "kafka/responses.h"

/*
 * API keys of the requests that change a transaction, and of Produce, which is safe by its sequence numbers.
 */
#define API_PRODUCE 0
#define API_ADD_PARTITIONS_TO_TXN 24
#define API_ADD_OFFSETS_TO_TXN 25
#define API_END_TXN 26
#define API_TXN_OFFSET_COMMIT 28
#define API_UNKNOWN (-1)
#define TXN_OFFSET_COMMIT_FENCED 3 /* the first version that contains the member's generation */

void
responses_init(struct responses *responses, int is_embedded)
{
        *responses = (struct responses){.is_embedded = is_embedded};
        begin_delay_init(&responses->delay);
}

/*
 * An interceptor, called for each response, and with an error for each request that ends without one, before
 * librdkafka sends the request again. It is then unknown whether Kafka has received the first copy, or will.
 */
static rd_kafka_resp_err_t
on_response(rd_kafka_t *client, int fd, const char *broker, int32_t broker_id, int16_t api, int16_t version,
            int32_t correlation, size_t size, int64_t rtt, rd_kafka_resp_err_t err, void *opaque)
{
        struct responses *responses = opaque;

        (void)client, (void)fd, (void)broker, (void)broker_id, (void)correlation, (void)size, (void)rtt;
        if (api == API_TXN_OFFSET_COMMIT && version < TXN_OFFSET_COMMIT_FENCED && !responses->is_embedded)
                atomic_store(&responses->is_unfenced, 1);
        if (api == API_ADD_PARTITIONS_TO_TXN)
                begin_delay_partitions_added(&responses->delay);
        else if (api == API_PRODUCE)
                begin_delay_produced(&responses->delay);
        switch (api) {
        case API_ADD_PARTITIONS_TO_TXN:
        case API_ADD_OFFSETS_TO_TXN:
        case API_END_TXN:
        case API_TXN_OFFSET_COMMIT:
                atomic_store(&responses->is_any, 1);
                break;
        case API_UNKNOWN:
                break;
        default:
                return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                atomic_store(&responses->is_tainted, 1);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t
responses_watch(struct responses *responses, rd_kafka_t *client)
{
        return rd_kafka_interceptor_add_on_response_received(client, "gatepost", on_response, responses);
}
