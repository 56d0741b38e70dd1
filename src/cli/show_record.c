#include "cli/show_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/colour.h"
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

        printf("%s%s%s %s%s%s %" PRId32 "/%" PRId64 " key=%s", colour_code(COLOUR_FAINT),
               format_timestamp(message, when), colour_code(COLOUR_NONE),
               colour_code(message_header(message, RECORD_REASON).data == NULL ? COLOUR_BOLD : COLOUR_RED),
               rd_kafka_topic_name(message->rkt), colour_code(COLOUR_NONE), message->partition,
               message->offset, colour_code(COLOUR_BLUE));
        text_print(stdout, message->key, message->key_len);
        fputs(colour_code(COLOUR_NONE), stdout);
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

static void
put_headers(yajl_gen json, const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;

        json_text(json, "headers");
        (void)yajl_gen_map_open(json);
        if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == 0; i++)
                        json_bytes(json, name, value, len);
        }
        (void)yajl_gen_map_close(json);
}

void
show_record_content(yajl_gen json, const rd_kafka_message_t *message)
{
        put_headers(json, message);
        json_bytes(json, "value", message->payload, message->len);
}

void
show_record_json(const rd_kafka_message_t *message)
{
        char when[CLOCK_RFC3339_SIZE];
        yajl_gen json = json_new(0);

        (void)yajl_gen_map_open(json);
        json_member(json, "topic", rd_kafka_topic_name(message->rkt));
        json_number(json, "partition", message->partition);
        json_number(json, "offset", message->offset);
        json_member(json, "timestamp", format_timestamp(message, when));
        json_bytes(json, "key", message->key, message->key_len);
        show_record_content(json, message);
        (void)yajl_gen_map_close(json);
        json_print(json);
}
