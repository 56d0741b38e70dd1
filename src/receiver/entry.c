#include "receiver/entry.h"

#include "base/clock.h"
#include "model/record.h"

static int
add(rd_kafka_headers_t *headers, const char *name, const char *value)
{
        return value == NULL ||
               rd_kafka_header_add(headers, name, -1, value, -1) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_headers_t *
entry_headers(const struct config *config, const struct screened *screened, int64_t now_ms,
              const char *request_id, const char *replay_of)
{
        const struct delivery *delivery = &screened->delivery;
        rd_kafka_headers_t *headers = rd_kafka_headers_new(11);
        char received[CLOCK_RFC3339_SIZE];

        if (headers == NULL)
                return NULL;
        if (add(headers, RECORD_SOURCE, screened->source->name) &&
            add(headers, RECORD_WEBHOOK_ID, delivery->webhook_id) &&
            add(headers, RECORD_TIMESTAMP, delivery->timestamp_text) &&
            add(headers, RECORD_SIGNATURE, delivery->signature_text) &&
            add(headers, RECORD_RECEIVED, clock_format_ms(now_ms, received)) &&
            add(headers, RECORD_REQUEST_ID, request_id) && add(headers, RECORD_INSTANCE, config->instance) &&
            add(headers, RECORD_REPLAY_OF, replay_of) &&
            add(headers, RECORD_TRACEPARENT, screened->traceparent) &&
            add(headers, RECORD_TRACESTATE, screened->tracestate))
                return headers;
        rd_kafka_headers_destroy(headers);
        return NULL;
}
