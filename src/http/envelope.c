#include "http/envelope.h"

#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>

#include "base/compiler.h"
#include "base/json_memory.h"

static void
put(yajl_gen json, const char *text)
{
        (void)yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

static void
put_member(yajl_gen json, const char *name, const char *value)
{
        put(json, name);
        put(json, value);
}

static void
put_violations(yajl_gen json, const struct http_violation *violations, size_t n)
{
        put(json, "violations");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < n; i++) {
                (void)yajl_gen_map_open(json);
                put_member(json, "field", violations[i].field);
                put_member(json, "message", violations[i].message);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
}

/* The text, to be released with free(); NULL when there is no memory to copy it to. */
static char *
generate(struct json_memory *memory, const char *code, const char *message,
         const struct http_violation *violations, size_t n, const char *request_id, size_t *len)
{
        yajl_gen json = yajl_gen_alloc(&memory->functions);
        const unsigned char *text;
        char *copy = NULL;

        (void)yajl_gen_map_open(json);
        put(json, "ok");
        (void)yajl_gen_bool(json, 0);
        put(json, "error");
        (void)yajl_gen_map_open(json);
        put_member(json, "code", code);
        put_member(json, "message", message);
        if (n > 0)
                put_violations(json, violations, n);
        put_member(json, "requestId", request_id);
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_map_close(json);
        if (yajl_gen_get_buf(json, &text, len) == yajl_gen_status_ok)
                copy = strndup((const char *)text, *len);
        yajl_gen_free(json);
        return copy;
}

char *
envelope_error(const char *code, const char *message, const struct http_violation *violations, size_t n,
               const char *request_id, size_t *len)
{
        struct json_memory memory;
        char *text;

        json_memory_init(&memory);
        if (setjmp(memory.failed) == 0)
                text = generate(&memory, code, message, violations, n, request_id, len);
        else
                text = NULL;
        json_memory_clear(&memory);
        return text;
}

void
envelope_reply(struct http_request *request, int status, const char *code, const char *message,
               const struct http_violation *violations, size_t n)
{
        const struct http_header retry_after = {"Retry-After", status == 429 ? "1" : "2"},
                                 allow = {"Allow", "POST"};
        const struct http_header *header = NULL;
        size_t len = 0;
        char *body = envelope_error(code, message, violations, n, http_request_id(request), &len);

        if (status == 503 || status == 429)
                header = &retry_after;
        else if (status == 405)
                header = &allow;
        http_reply(request, status, header, header != NULL, body == NULL ? "" : body, body == NULL ? 0 : len);
        free(body);
}
