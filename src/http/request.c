#include "http/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/pool.h"
#include "http/connections.h"
#include "http/gate.h"
#include "http/gate_write.h"
#include "http/request_state.h"

#define FORWARDED_SIZE 4096
#define TRIM_MIN 4096 /* bytes that a complete body may have allocated in excess */

/* The values of X-Forwarded-For, each preceded by a comma. */
struct forwarded_list {
        char text[FORWARDED_SIZE];
        size_t len;
};

/* A list that does not fit is cut on the left: the nearest proxies append on the right. */
static void
join_forwarded(const struct http_header *header, void *arg)
{
        struct forwarded_list *list = arg;
        const char *value = header->value;
        size_t len, cut = 0;

        if (strcasecmp(header->name, "X-Forwarded-For") != 0)
                return;
        len = strlen(value);
        if (len > FORWARDED_SIZE - 1) {
                value += len - (FORWARDED_SIZE - 1);
                len = FORWARDED_SIZE - 1;
        }
        if (list->len + 1 + len > FORWARDED_SIZE)
                cut = list->len + 1 + len - FORWARDED_SIZE;
        memmove(list->text, list->text + cut, list->len - cut);
        list->len -= cut;
        list->text[list->len++] = ',';
        memcpy(list->text + list->len, value, len);
        list->len += len;
}

/* Return the client: by X-Forwarded-For if the peer is a trusted proxy. */
static struct address
find_client(const struct http_request *request, const struct connection *connection)
{
        const struct http_trust *trust = &connection->all->limits.trust;
        struct forwarded_list list;

        if (!request->head.is_forwarded || !forwarded_trusts(trust, &connection->client, connection->is_unix))
                return connection->client;
        list.len = 0;
        http_request_headers(request, join_forwarded, &list);
        return forwarded_client(trust, &connection->client, list.text + 1, list.len - 1);
}

struct http_request *
request_new(struct connection *connection)
{
        struct http_request *request = pool_alloc_zeroed(sizeof(*request));

        if (request == NULL)
                return NULL;
        request->connection = connection;
        request->all = connection->all;
        request->text = framing_take_head(&connection->framing, &request->head);
        request->client = find_client(request, connection);
        connections_next_id(connection->all, request->id);
        return request;
}

static void
release_memory(struct http_request *request)
{
        uint64_t reserved = http_request_take_memory(request);

        if (reserved > 0)
                memory_budget_release(request->all->limits.budget, reserved);
}

static void
free_body(struct http_request *request)
{
        size_t ignored;

        pool_free(http_request_take_body(request, &ignored));
}

void
request_free(struct http_request *request)
{
        if (request == NULL)
                return;
        release_memory(request);
        head_clear(&request->head);
        pool_free(request->text);
        free_body(request);
        pool_free(request->answer);
        pool_free(request);
}

int
request_resize_body(struct http_request *request, size_t size)
{
        char *body = pool_resize(request->body, size);

        if (body == NULL)
                return -1;
        request->body = body;
        request->body_size = size;
        return 0;
}

void
request_trim_memory(struct http_request *request)
{
        uint64_t surplus = request->reserved > request->body_len ? request->reserved - request->body_len : 0;

        if (request->body_size > request->body_len + TRIM_MIN &&
            request_resize_body(request, request->body_len) != 0)
                return; /* shrinking has failed: keep the memory and its reservation */
        request->reserved -= surplus;
        if (surplus > 0)
                memory_budget_release(request->all->limits.budget, surplus);
}

void
request_discard_body(struct http_request *request)
{
        release_memory(request);
        free_body(request);
        request->is_discarded = 1;
}

void
request_close_after(struct http_request *request)
{
        char *text;

        if (request->answer_connection == ANSWER_CLOSES)
                return;
        text = answer_insert_close(request->answer, &request->answer_len);
        if (text == NULL)
                return; /* without the header, the client notices when the connection closes */
        request->answer = text;
        request->answer_connection = ANSWER_CLOSES;
}

/*
 * RFC 9112 §9.3. After a final answer to Expect, the client may send the body or not (RFC 9110 §10.1.1):
 * close.
 */
enum answer_connection
request_connection(const struct http_request *request)
{
        const struct head *head = &request->head;

        if (head->closes || request->is_too_large || request->all->is_stopping ||
            (request->connection != NULL && request->connection->state == GATE_BODY &&
             head->expects_continue && head->minor == 1 && head_has_body(head)))
                return ANSWER_CLOSES;
        if (head->minor == 1)
                return ANSWER_KEEPS;
        return head->keeps_alive ? ANSWER_KEEPS_1_0 : ANSWER_CLOSES;
}

const char *
http_request_method(const struct http_request *request)
{
        return request->head.method;
}

const char *
http_request_path(const struct http_request *request, size_t *len)
{
        *len = request->head.path_len;
        return request->text + request->head.path;
}

void
http_request_headers(const struct http_request *request,
                     void (*visit)(const struct http_header *header, void *arg), void *arg)
{
        for (size_t i = 0; i < request->head.n_fields; i++) {
                const struct head_span *field = &request->head.fields[i];
                const struct http_header header = {request->text + field->name, request->text + field->value};

                visit(&header, arg);
        }
}

int
http_request_awaits_continue(const struct http_request *request)
{
        return request->head.expects_continue && request->head.minor == 1;
}

void *
http_request_data(struct http_request *request)
{
        return request->data;
}

void
http_request_make_body_optional(struct http_request *request)
{
        request->is_optional = 1;
}

int
http_request_is_too_large(const struct http_request *request)
{
        return request->is_too_large;
}

const void *
http_request_body(const struct http_request *request, size_t *len)
{
        *len = request->body_len;
        if (request->is_discarded)
                return NULL;
        return request->body == NULL ? "" : request->body;
}

void *
http_request_take_body(struct http_request *request, size_t *len)
{
        void *body = request->body;

        *len = request->body_len;
        request->body = NULL;
        request->body_len = 0;
        request->body_size = 0;
        return body;
}

uint64_t
http_request_take_memory(struct http_request *request)
{
        uint64_t reserved = request->reserved;

        request->reserved = 0;
        return reserved;
}

const struct address *
http_request_client(const struct http_request *request)
{
        return &request->client;
}

const struct address *
http_request_untrusted_proxy(const struct http_request *request)
{
        const struct connection *connection = request->connection;
        const struct http_limits *limits = &request->all->limits;

        if (!request->head.is_forwarded || connection == NULL || limits->requires_proxy ||
            forwarded_trusts(&limits->trust, &connection->client, connection->is_unix))
                return NULL;
        return &connection->client;
}

const char *
http_request_id(const struct http_request *request)
{
        return request->id;
}

void
http_request_forget(struct http_request *request)
{
        release_memory(request);
        free_body(request);
        pool_free(request->head.fields);
        request->head.fields = NULL;
        request->head.n_fields = 0;
        pool_free(request->text);
        request->text = NULL;
        request->head.path_len = 0;
}

/* Answers written by evhttp */

static void
add_headers(const struct http_request *request, const struct http_header *headers, size_t n_headers)
{
        struct evkeyvalq *out = evhttp_request_get_output_headers(request->evreq);
        const char *type = "application/json",
                   *connection = answer_connection_value(request_connection(request));

        for (size_t i = 0; i < n_headers; i++) {
                if (strcasecmp(headers[i].name, "Content-Type") == 0)
                        type = headers[i].value;
                else
                        (void)evhttp_add_header(out, headers[i].name, headers[i].value);
        }
        (void)evhttp_add_header(out, "Content-Type", type);
        if (connection != NULL)
                (void)evhttp_add_header(out, "Connection", connection);
        (void)evhttp_add_header(out, "Date", answer_date());
        (void)evhttp_add_header(out, "x-request-id", request->id);
}

/* HEAD is answered with the headers of GET, without the body (RFC 9110 §9.3.2). */
static void
announce_length(const struct http_request *request, size_t len)
{
        char text[32];

        (void)snprintf(text, sizeof(text), "%zu", len);
        (void)evhttp_add_header(evhttp_request_get_output_headers(request->evreq), "Content-Length", text);
}

void
http_reply(struct http_request *request, int status, const struct http_header *headers, size_t n_headers,
           const char *body, size_t len)
{
        struct connection *connection = request->connection;
        struct evbuffer *out = NULL;

        if (connection != NULL) {
                out = evhttp_request_get_output_buffer(request->evreq);
                connection->closes = request_connection(request) == ANSWER_CLOSES;
                connection->is_replied = 1;
                connection->request = NULL;
                add_headers(request, headers, n_headers);
                if (strcmp(request->head.method, "HEAD") == 0)
                        announce_length(request, len);
                else if (evbuffer_add(out, body, len) != 0)
                        status = 500;
        }
        evhttp_send_reply(request->evreq, status, answer_phrase(status), NULL);
        request_free(request);
        if (connection != NULL)
                gate_send_evhttp_answer(connection);
}

static void
reply_error_by_evhttp(struct http_request *request, const struct http_error *error)
{
        struct http_header header = {NULL, NULL};
        size_t len = 0;
        char *body = answer_envelope(error, request->id, &len);

        header.name = answer_error_header(error->status, request->id, &header.value);
        http_reply(request, error->status, &header, header.name != NULL, body == NULL ? "" : body, len);
        pool_free(body);
}

void
http_reply_error(struct http_request *request, const struct http_error *error)
{
        if (request->evreq != NULL) {
                reply_error_by_evhttp(request, error);
                return;
        }
        request->answer_connection = request_connection(request);
        request->answer = answer_error(error, request->id, request->answer_connection,
                                       strcmp(request->head.method, "HEAD") == 0, &request->answer_len);
        if (request->answer == NULL) /* memory has failed: close without an answer */
                request->connection->is_broken = 1;
}
