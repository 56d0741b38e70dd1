#include "cli/show_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <yajl/yajl_gen.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Print text from the network: control characters could play tricks on a terminal. */
static void
print_safely(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++) {
                unsigned char c = (unsigned char)text[i];

                if (c < 0x20 || c == 0x7f)
                        printf("\\x%02x", c);
                else
                        putchar(c);
        }
}

static char *
format_timestamp(const rd_kafka_message_t *message, char text[CLOCK_RFC3339_SIZE])
{
        rd_kafka_timestamp_type_t type;

        return clock_format_ms(rd_kafka_message_timestamp(message, &type), text);
}

static void
print_headers(const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return;
        for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == 0; i++) {
                printf("    %s: ", name);
                print_safely(value, len);
                putchar('\n');
        }
}

void
show_record_text(const rd_kafka_message_t *message, int with_headers)
{
        char when[CLOCK_RFC3339_SIZE];

        printf("%s %s %" PRId32 "/%" PRId64 " key=", format_timestamp(message, when),
               rd_kafka_topic_name(message->rkt), message->partition, message->offset);
        print_safely(message->key, message->key_len);
        if (with_headers) {
                putchar('\n');
                print_headers(message);
                printf("    ");
        } else {
                putchar(' ');
        }
        print_safely(message->payload, message->len);
        putchar('\n');
}

static void
put(yajl_gen json, const void *text, size_t len)
{
        (void)yajl_gen_string(json, text, len);
}

static void
put_name(yajl_gen json, const char *name)
{
        put(json, name, strlen(name));
}

/* Bytes as a string where they are UTF-8; else in base64 under another name, so that nothing is lost. */
static void
put_bytes(yajl_gen json, const char *name, const void *bytes, size_t len)
{
        char *base64, *other;
        int n;

        if (utf8_is_valid(bytes == NULL ? "" : bytes, len)) {
                put_name(json, name);
                put(json, bytes == NULL ? "" : bytes, len);
                return;
        }
        base64 = mem_alloc(len / 3 * 4 + 8);
        n = EVP_EncodeBlock((unsigned char *)base64, bytes, (int)len);
        other = mem_printf("%sBase64", name);
        put_name(json, other);
        put(json, base64, (size_t)n);
        free(other);
        free(base64);
}

static void
put_headers(yajl_gen json, const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;
        const char *name;
        const void *value;
        size_t len;

        put_name(json, "headers");
        (void)yajl_gen_map_open(json);
        if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &len) == 0; i++)
                        put_bytes(json, name, value, len);
        }
        (void)yajl_gen_map_close(json);
}

void
show_record_json(const rd_kafka_message_t *message)
{
        yajl_gen json = yajl_gen_alloc(NULL);
        const unsigned char *text;
        char when[CLOCK_RFC3339_SIZE];
        size_t len;

        if (json == NULL)
                return;
        (void)yajl_gen_map_open(json);
        put_name(json, "topic");
        put_name(json, rd_kafka_topic_name(message->rkt));
        put_name(json, "partition");
        (void)yajl_gen_integer(json, message->partition);
        put_name(json, "offset");
        (void)yajl_gen_integer(json, message->offset);
        put_name(json, "timestamp");
        put_name(json, format_timestamp(message, when));
        put_bytes(json, "key", message->key, message->key_len);
        put_headers(json, message);
        put_bytes(json, "value", message->payload, message->len);
        (void)yajl_gen_map_close(json);
        if (yajl_gen_get_buf(json, &text, &len) == yajl_gen_status_ok)
                printf("%.*s\n", (int)len, (const char *)text);
        yajl_gen_free(json);
}
