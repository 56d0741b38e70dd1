#include "http/answer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/pool.h"

#define DATE_SIZE 30 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define FIRST_SIZE 480

/* A growing text. When memory fails, it is marked as failed and ignores further input. */
struct text {
        char *data; /* from the pool */
        size_t len;
        size_t size;
        int failed;
};

static void
put(struct text *text, const char *data, size_t len)
{
        if (text->failed)
                return;
        if (text->size - text->len < len) {
                size_t size = text->size == 0 ? FIRST_SIZE : 2 * text->size;
                char *grown;

                size = size - text->len < len ? text->len + len : size;
                grown = pool_resize(text->data, size);
                if (grown == NULL) {
                        text->failed = 1;
                        return;
                }
                text->data = grown;
                text->size = size;
        }
        memcpy(text->data + text->len, data, len);
        text->len += len;
}

static void
put_string(struct text *text, const char *string)
{
        put(text, string, strlen(string));
}

static void
put_number(struct text *text, size_t number)
{
        char digits[20];
        size_t at = sizeof(digits);

        do {
                digits[--at] = (char)('0' + number % 10);
                number /= 10;
        } while (number > 0);
        put(text, digits + at, sizeof(digits) - at);
}

/* Append a JSON string (RFC 8259 §7). yajl's generator would take as long as the rest of a refusal. */
static void
put_json(struct text *text, const char *string)
{
        put(text, "\"", 1);
        while (*string != '\0') {
                size_t n = 0;
                char escape[7];

                while ((unsigned char)string[n] >= 0x20 && string[n] != '"' && string[n] != '\\')
                        n++;
                put(text, string, n);
                string += n;
                if (*string == '\0')
                        break;
                (void)snprintf(escape, sizeof(escape), (unsigned char)*string < 0x20 ? "\\u%04x" : "\\%c",
                               (unsigned char)*string);
                put_string(text, escape);
                string++;
        }
        put(text, "\"", 1);
}

static void
put_envelope(struct text *text, const struct http_error *error, const char *request_id)
{
        put_string(text, "{\"ok\":false,\"error\":{\"code\":");
        put_json(text, error->code);
        put_string(text, ",\"message\":");
        put_json(text, error->message);
        for (size_t i = 0; i < error->n_violations; i++) {
                put_string(text, i == 0 ? ",\"violations\":[{\"field\":" : ",{\"field\":");
                put_json(text, error->violations[i].field);
                put_string(text, ",\"message\":");
                put_json(text, error->violations[i].message);
                put_string(text, i + 1 == error->n_violations ? "}]" : "}");
        }
        put_string(text, ",\"requestId\":");
        put_json(text, request_id);
        put_string(text, "}}");
}

/* Returns NULL when memory has failed. */
static char *
finish(struct text *text, size_t *len)
{
        if (text->failed) {
                pool_free(text->data);
                return NULL;
        }
        *len = text->len;
        return text->data;
}

char *
answer_envelope(const struct http_error *error, const char *request_id, size_t *len)
{
        struct text text = {0};

        put_envelope(&text, error, request_id);
        return finish(&text, len);
}

const char *
answer_connection_value(enum answer_connection connection)
{
        if (connection == ANSWER_KEEPS)
                return NULL;
        return connection == ANSWER_CLOSES ? "close" : "keep-alive";
}

const char *
answer_error_header(int status, const char *request_id, const char **value)
{
        /*
         * Spread the retries of senders that are refused at the same moment, by the id, which is as good as
         * random.
         */
        static const char *const seconds[] = {"1", "2", "3", "4", "5"};
        int digit = bytes_hex_digit(request_id[ANSWER_ID_SIZE - 2]);

        switch (status) {
        case 405:
                *value = "POST";
                return "Allow";
        case 429:
                *value = "1";
                return "Retry-After";
        case 503:
                *value = seconds[(size_t)(digit < 0 ? 0 : digit) % ARRAY_LEN(seconds)];
                return "Retry-After";
        default:
                return NULL;
        }
}

static void
put_header(struct text *text, const char *name, const char *value)
{
        if (name == NULL || value == NULL)
                return;
        put_string(text, name);
        put(text, ": ", 2);
        put_string(text, value);
        put(text, "\r\n", 2);
}

char *
answer_error(const struct http_error *error, const char *request_id, enum answer_connection connection,
             int is_head, size_t *len)
{
        struct text body = {0}, text = {0};
        const char *value = NULL, *name = answer_error_header(error->status, request_id, &value);

        put_envelope(&body, error, request_id);
        text.failed = body.failed;
        put_string(&text, "HTTP/1.1 ");
        put_number(&text, (size_t)error->status);
        put(&text, " ", 1);
        put_string(&text, answer_phrase(error->status));
        put_string(&text, "\r\nContent-Type: application/json\r\nContent-Length: ");
        put_number(&text, body.len);
        put(&text, "\r\n", 2);
        put_header(&text, name, value);
        put_header(&text, "Connection", answer_connection_value(connection));
        put_header(&text, "Date", answer_date());
        put_header(&text, "x-request-id", request_id);
        put(&text, "\r\n", 2);
        if (!text.failed && !is_head)
                put(&text, body.data, body.len);
        pool_free(body.data);
        return finish(&text, len);
}

char *
answer_insert_close(char *text, size_t *len)
{
        static const char header[] = "Connection: close\r\n";
        const size_t n = sizeof(header) - 1;
        char *larger = pool_resize(text, *len + n), *at;

        if (larger == NULL)
                return NULL;
        at = (char *)memchr(larger, '\n', *len) + 1; /* after the status line */
        memmove(at + n, at, *len - (size_t)(at - larger));
        memcpy(at, header, n);
        *len += n;
        return larger;
}

/* The codes of all answers of gatepostd. The first of a status is that of what the gate refuses. */
static const struct {
        int status;
        const char *code;
} codes[] = {
    {400, "BAD_REQUEST"},        {400, "VALIDATION_ERROR"},   {401, "STALE_TIMESTAMP"},
    {401, "INVALID_SIGNATURE"},  {403, "FORBIDDEN"},          {404, "NOT_FOUND"},
    {405, "METHOD_NOT_ALLOWED"}, {408, "REQUEST_TIMEOUT"},    {413, "PAYLOAD_TOO_LARGE"},
    {414, "URI_TOO_LONG"},       {417, "EXPECTATION_FAILED"}, {421, "MISDIRECTED_REQUEST"},
    {429, "TOO_MANY_REQUESTS"},  {500, "INTERNAL_ERROR"},     {501, "NOT_IMPLEMENTED"},
    {503, "UNAVAILABLE"},
};

int
answer_has_code(int status, const char *code)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                if (codes[i].status == status && strcmp(codes[i].code, code) == 0)
                        return 1;
        }
        return 0;
}

struct http_error
answer_refusal(int status, const char *reason)
{
        struct http_error error = {.status = status, .code = codes[0].code, .message = reason};
        size_t i = 0;

        while (i < ARRAY_LEN(codes) && codes[i].status != status)
                i++;
        if (i < ARRAY_LEN(codes))
                error.code = codes[i].code;
        return error;
}

const char *
answer_phrase(int status)
{
        static const struct {
                int status;
                const char *phrase;
        } known[] = {
            {200, "OK"},
            {201, "Created"},
            {202, "Accepted"},
            {204, "No Content"},
            {400, "Bad Request"},
            {401, "Unauthorized"},
            {403, "Forbidden"},
            {404, "Not Found"},
            {405, "Method Not Allowed"},
            {408, "Request Timeout"},
            {409, "Conflict"},
            {413, "Content Too Large"},
            {414, "URI Too Long"},
            {417, "Expectation Failed"},
            {421, "Misdirected Request"},
            {422, "Unprocessable Content"},
            {429, "Too Many Requests"},
            {500, "Internal Server Error"},
            {501, "Not Implemented"},
            {503, "Service Unavailable"},
        };

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                if (known[i].status == status)
                        return known[i].phrase;
        }
        return "Unknown";
}

/* Formatted once a second. */
const char *
answer_date(void)
{
        static _Thread_local char text[DATE_SIZE];
        static _Thread_local time_t written;
        time_t now = time(NULL);
        struct tm tm;

        if (now != written && gmtime_r(&now, &tm) != NULL) {
                (void)strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
                written = now;
        }
        return text;
}
