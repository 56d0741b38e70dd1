#include "cli/show_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "kafka/message.h"

static char *
format_timestamp(const rd_kafka_message_t *message, char text[CLOCK_RFC3339_SIZE])
{
        rd_kafka_timestamp_type_t type;

        return clock_format_ms(rd_kafka_message_timestamp(message, &type), text);
}

void
show_record_headers(const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return;
        for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == 0; i++) {
                printf("    ");
                text_print(stdout, name, strlen(name));
                printf(": ");
                text_print(stdout, value, len);
                putchar('\n');
        }
}

void
show_record_text(const rd_kafka_message_t *message, int with_headers)
{
        char when[CLOCK_RFC3339_SIZE];

        printf("%s %s %" PRId32 "/%" PRId64 " key=", format_timestamp(message, when),
               rd_kafka_topic_name(message->rkt), message->partition, message->offset);
        text_print(stdout, message->key, message->key_len);
        if (with_headers) {
                putchar('\n');
                show_record_headers(message);
                printf("    ");
        } else {
                putchar(' ');
        }
        text_print(stdout, message->payload, message->len);
        putchar('\n');
}

static int
is_text(const char *body, size_t len)
{
        for (size_t i = 0, n; i < len; i += n) {
                n = strchr("\t\n\r", body[i]) != NULL && body[i] != '\0' ? 1
                                                                         : text_printable(body + i, len - i);
                if (n == 0)
                        return 0;
        }
        return 1;
}

void
show_record_body(const char *body, size_t len)
{
        if (len == 0)
                return;
        if (is_text(body, len)) {
                (void)fwrite(body, 1, len, stdout);
                if (body[len - 1] == '\n')
                        return;
        } else {
                text_print(stdout, body, len);
        }
        putchar('\n');
}

static void
put_headers(struct json_writer *json, const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;

        json_open_object(json, "headers");
        if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == 0; i++)
                        json_bytes(json, name, value, len);
        }
        json_close_object(json);
}

void
show_record_members(struct json_writer *json, const rd_kafka_message_t *message)
{
        put_headers(json, message);
        json_bytes(json, "value", message->payload, message->len);
}

void
show_record_json(const rd_kafka_message_t *message)
{
        char when[CLOCK_RFC3339_SIZE];
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_member(json, "topic", rd_kafka_topic_name(message->rkt));
        json_number(json, "partition", message->partition);
        json_number(json, "offset", message->offset);
        json_member(json, "timestamp", format_timestamp(message, when));
        json_bytes(json, "key", message->key, message->key_len);
        show_record_members(json, message);
        json_close_object(json);
        json_print(json);
}
