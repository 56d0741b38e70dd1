#include "kafka/wire.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/mem.h"

#define MAX_ANSWER (16u << 20)
#define CORRELATION_ID 1
#define SIZE_BYTES 4

void
wire_put(struct wire_request *request, int64_t value, size_t n_bytes)
{
        uint64_t bits = (uint64_t)value;

        request->bytes = mem_resize(request->bytes, request->len + n_bytes, 1);
        for (size_t i = 0; i < n_bytes; i++)
                request->bytes[request->len + i] = (uint8_t)(bits >> (8 * (n_bytes - 1 - i)));
        request->len += n_bytes;
}

static void
put_raw(struct wire_request *request, const void *bytes, size_t len)
{
        request->bytes = mem_resize(request->bytes, request->len + len + 1, 1);
        memcpy(request->bytes + request->len, bytes, len);
        request->len += len;
}

void
wire_put_string(struct wire_request *request, const char *text)
{
        size_t len = text == NULL ? 0 : strlen(text);

        wire_put(request, text == NULL ? -1 : (int64_t)len, 2);
        if (len > 0)
                put_raw(request, text, len);
}

void
wire_put_bytes(struct wire_request *request, const void *bytes, size_t len)
{
        wire_put(request, (int64_t)len, 4);
        put_raw(request, bytes, len);
}

void
wire_begin(struct wire_request *request, enum wire_api api, int version)
{
        *request = (struct wire_request){NULL, 0};
        wire_put(request, 0, SIZE_BYTES);
        wire_put(request, api, 2);
        wire_put(request, version, 2);
        wire_put(request, CORRELATION_ID, 4);
        wire_put_string(request, "gatepost-doctor");
}

/* Return whether the answer has so many more bytes. */
static int
has(struct wire_answer *answer, size_t n_bytes)
{
        if (answer->len - answer->at < n_bytes) {
                answer->is_short = 1;
                answer->at = answer->len;
                return 0;
        }
        return 1;
}

int64_t
wire_get(struct wire_answer *answer, size_t n_bytes)
{
        uint64_t value = 0;

        if (!has(answer, n_bytes))
                return 0;
        value = answer->bytes[answer->at] & 0x80 ? UINT64_MAX : 0;
        for (size_t i = 0; i < n_bytes; i++)
                value = value << 8 | answer->bytes[answer->at + i];
        answer->at += n_bytes;
        return (int64_t)value;
}

int32_t
wire_get_count(struct wire_answer *answer)
{
        int64_t n = wire_get(answer, 4);

        if (n > (int64_t)(answer->len - answer->at))
                answer->is_short = 1; /* each element has at least one byte */
        return n < 0 || answer->is_short ? 0 : (int32_t)n;
}

void
wire_skip(struct wire_answer *answer, size_t n_bytes)
{
        if (has(answer, n_bytes))
                answer->at += n_bytes;
}

char *
wire_get_string(struct wire_answer *answer)
{
        int64_t len = wire_get(answer, 2);
        size_t begin = answer->at;

        if (len < 0 || !has(answer, (size_t)len))
                return mem_strdup("");
        answer->at += (size_t)len;
        return mem_strndup((const char *)answer->bytes + begin, (size_t)len);
}

void
wire_skip_string(struct wire_answer *answer)
{
        int64_t len = wire_get(answer, 2);

        if (len > 0)
                wire_skip(answer, (size_t)len);
}

const uint8_t *
wire_get_bytes(struct wire_answer *answer, size_t *len)
{
        int64_t n = wire_get(answer, 4);
        const uint8_t *bytes = answer->bytes + answer->at;

        *len = n < 0 || !has(answer, (size_t)n) ? 0 : (size_t)n;
        answer->at += *len;
        return bytes;
}

void
wire_put_compact(struct wire_request *request, const char *text)
{
        uint64_t n = strlen(text) + 1; /* 7 bits in a byte, the lowest first */

        for (; n > 0x7f; n >>= 7)
                wire_put(request, (int64_t)(0x80 | (n & 0x7f)), 1);
        wire_put(request, (int64_t)n, 1);
        put_raw(request, text, strlen(text));
}

static uint32_t
get_varint(struct wire_answer *answer)
{
        uint32_t value = 0;
        int64_t byte = 0x80;

        for (unsigned shift = 0; byte & 0x80 && shift < 32; shift += 7) {
                byte = wire_get(answer, 1);
                value |= (uint32_t)(byte & 0x7f) << shift;
        }
        return value;
}

/* Return the length of a compact string or array, whose lengths are one higher; 0 for null. */
int32_t
wire_get_compact_count(struct wire_answer *answer)
{
        uint32_t n = get_varint(answer);

        if (n > answer->len - answer->at + 1)
                answer->is_short = 1;
        return n == 0 || answer->is_short ? 0 : (int32_t)(n - 1);
}

char *
wire_get_compact(struct wire_answer *answer)
{
        size_t len = (size_t)wire_get_compact_count(answer), begin = answer->at;

        wire_skip(answer, len);
        return mem_strndup((const char *)answer->bytes + begin, len);
}

void
wire_skip_compact(struct wire_answer *answer)
{
        wire_skip(answer, (size_t)wire_get_compact_count(answer));
}

void
wire_skip_tags(struct wire_answer *answer)
{
        for (uint32_t n = get_varint(answer); n > 0 && !answer->is_short; n--) {
                (void)get_varint(answer);
                wire_skip(answer, get_varint(answer));
        }
}

void
wire_clear(struct wire_answer *answer)
{
        free(answer->bytes);
        *answer = (struct wire_answer){0};
}

static int
receive(struct dial *dial, struct wire_answer *answer, int timeout_ms, enum dial_failure *failure,
        struct error *error)
{
        uint8_t head[SIZE_BYTES];
        struct wire_answer size = {.bytes = head, .len = sizeof(head)};
        int64_t len;

        if (dial_receive(dial, head, sizeof(head), timeout_ms, failure, error) != 0)
                return -1;
        len = wire_get(&size, SIZE_BYTES);
        *failure = DIAL_FAILED;
        if (len < SIZE_BYTES || len > MAX_ANSWER)
                return error_set(error, "the answer is not from Kafka");
        answer->len = (size_t)len;
        answer->bytes = mem_alloc(answer->len);
        if (dial_receive(dial, answer->bytes, answer->len, timeout_ms, failure, error) != 0)
                return -1;
        *failure = DIAL_FAILED;
        return wire_get(answer, 4) == CORRELATION_ID ? 0 : error_set(error, "the answer is not from Kafka");
}

int
wire_call(struct dial *dial, struct wire_request *request, struct wire_answer *answer, int timeout_ms,
          enum dial_failure *failure, struct error *error)
{
        struct wire_request size = {NULL, 0};
        int result;

        *answer = (struct wire_answer){0};
        wire_put(&size, (int64_t)(request->len - SIZE_BYTES), SIZE_BYTES);
        memcpy(request->bytes, size.bytes, SIZE_BYTES);
        free(size.bytes);
        result = dial_send(dial, request->bytes, request->len, timeout_ms, failure, error);
        OPENSSL_cleanse(request->bytes, request->len); /* it may have a password */
        free(request->bytes);
        request->bytes = NULL;
        return result == 0 ? receive(dial, answer, timeout_ms, failure, error) : -1;
}
