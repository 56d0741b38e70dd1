#include "kafka/message.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 256

int
message_origins_add(struct message_origins *list, const struct message_origin *origin)
{
        if (list->n == list->size) {
                size_t size = list->size == 0 ? FIRST_SIZE : 2 * list->size;
                struct message_origin *items = reallocarray(list->items, size, sizeof(*items));

                if (items == NULL)
                        return -1;
                list->items = items;
                list->size = size;
        }
        list->items[list->n++] = *origin;
        return 0;
}

int64_t
message_timestamp_ms(const rd_kafka_message_t *message)
{
        int64_t timestamp_ms = rd_kafka_message_timestamp(message, NULL);

        return timestamp_ms < 0 ? 0 : timestamp_ms;
}

void
message_record(const rd_kafka_message_t *message, struct record *record)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;
        memset(record, 0, sizeof(*record));
        record->partition = message->partition;
        record->offset = message->offset;
        record->timestamp_ms = message_timestamp_ms(message);
        record->key = (struct span){message->key, message->key_len};
        record->body = (struct span){message->payload, message->len};
        if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return;
        for (size_t i = 0;
             rd_kafka_header_get_all(headers, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
                record_add_header(record, name, (struct span){value, len});
}

struct span
message_header(const rd_kafka_message_t *message, const char *name)
{
        rd_kafka_headers_t *headers;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
            rd_kafka_header_get_last(headers, name, &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return (struct span){NULL, 0};
        return (struct span){value, len};
}

int
message_is_marker(const rd_kafka_message_t *message)
{
        return message->len == 0 && message_header(message, RECORD_RELEASED).data != NULL &&
               message_header(message, RECORD_REASON).data == NULL;
}

int32_t
message_partition(struct span key, int32_t n)
{
        return rd_kafka_msg_partitioner_murmur2(NULL, key.data, key.len, n, NULL, NULL);
}

int
message_digest_headers(const rd_kafka_message_t *message, struct digest *digest)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return 0;
        for (size_t i = 0;
             rd_kafka_header_get_all(headers, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
                if (digest_header(digest, name, (struct span){value, len}) != 0)
                        return -1;
        }
        return 0;
}
