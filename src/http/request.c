#include "http/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "base/pool.h"
#include "http/date.h"
#include "http/incoming.h"
#include "http/phrase.h"
#include "http/target.h"

struct http_request {
        struct evhttp_request
            *evreq; /* owned by the connection, or by us when that has gone; replying settles it */
        struct connections *connections;
        const int *closing;
        struct address peer; /* the client, once its headers are forgotten */
        char id[17];
};

#define FORWARDED_SIZE 4096

/* The values of X-Forwarded-For, joined. */
struct forwarded_list {
        char text[FORWARDED_SIZE];
        size_t len;
};

static void
on_sent(struct evhttp_request *evreq, void *arg)
{
        connections_replied(arg, evhttp_request_get_connection(evreq));
}

struct http_request *
incoming_new(struct evhttp_request *evreq, struct connections *connections, const int *closing)
{
        struct http_request *request = pool_alloc_zeroed(sizeof(*request));

        evhttp_request_set_on_complete_cb(evreq, on_sent, connections);
        /* evhttp takes who sends a target in absolute-form for a proxy's client, and closes the connection without a word. */
        evreq->flags &= ~EVHTTP_PROXY_REQUEST;
        if (request == NULL)
                return NULL;
        request->evreq = evreq;
        request->connections = connections;
        request->closing = closing;
        request->peer = connections_client(connections, evhttp_request_get_connection(evreq));
        connections_next_id(connections, request->id);
        return request;
}

const char *
http_request_method(const struct http_request *request)
{
        switch (evhttp_request_get_command(request->evreq)) {
        case EVHTTP_REQ_GET:
                return "GET";
        case EVHTTP_REQ_POST:
                return "POST";
        case EVHTTP_REQ_HEAD:
                return "HEAD";
        case EVHTTP_REQ_PUT:
                return "PUT";
        case EVHTTP_REQ_DELETE:
                return "DELETE";
        case EVHTTP_REQ_OPTIONS:
                return "OPTIONS";
        case EVHTTP_REQ_TRACE:
                return "TRACE";
        case EVHTTP_REQ_CONNECT:
                return "CONNECT";
        case EVHTTP_REQ_PATCH:
                return "PATCH";
        }
        return "UNKNOWN";
}

const char *
http_request_path(const struct http_request *request, size_t *len)
{
        const char *target = evhttp_request_get_uri(request->evreq);

        return target_path(target, strlen(target), len);
}

void
http_request_headers(const struct http_request *request,
                     void (*visit)(const struct http_header *header, void *arg), void *arg)
{
        const struct evkeyvalq *headers = evhttp_request_get_input_headers(request->evreq);
        const struct evkeyval *field;

        TAILQ_FOREACH(field, headers, next)
        {
                const struct http_header header = {field->key, field->value};

                visit(&header, arg);
        }
}

const void *
http_request_body(struct http_request *request, size_t *len)
{
        struct evbuffer *buffer = evhttp_request_get_input_buffer(request->evreq);

        *len = evbuffer_get_length(buffer);
        return *len == 0 ? (const void *)"" : evbuffer_pullup(buffer, -1);
}

/* What does not fit is cut from the left: the nearest proxies write at the right. */
static void
join_forwarded(const struct http_header *header, void *arg)
{
        struct forwarded_list *list = arg;
        const char *value = header->value;
        size_t len = strlen(value), cut = 0;

        if (strcasecmp(header->name, "X-Forwarded-For") != 0)
                return;
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

struct address
http_request_client(const struct http_request *request)
{
        const struct http_trust *trust = connections_trust(request->connections);
        struct forwarded_list list;

        list.len = 0;
        if (!forwarded_trusts(trust, &request->peer))
                return request->peer;
        http_request_headers(request, join_forwarded, &list);
        if (list.len == 0)
                return request->peer;
        return forwarded_client(trust, &request->peer, list.text + 1, list.len - 1);
}

/* By these evhttp, and asks_to_close(), find out whether the connection stays and what the answer says of that. */
static int
is_of_connection(const char *name)
{
        return strcasecmp(name, "Connection") == 0;
}

void
http_request_forget(struct http_request *request)
{
        struct evkeyvalq *headers = evhttp_request_get_input_headers(request->evreq);
        struct evbuffer *body = evhttp_request_get_input_buffer(request->evreq);
        const struct evkeyval *field, *next;

        request->peer = http_request_client(request);
        (void)evbuffer_drain(body, evbuffer_get_length(body));
        for (field = TAILQ_FIRST(headers); field != NULL; field = next) {
                next = TAILQ_NEXT(field, next);
                if (!is_of_connection(field->key))
                        (void)evhttp_remove_header(headers, field->key);
        }
}

const char *
http_request_id(const struct http_request *request)
{
        return request->id;
}

/* Whether a list, of tokens with commas between, names this one. */
static int
lists(const char *list, const char *wanted)
{
        static const char separators[] = ", \t";

        for (list += strspn(list, separators); *list != '\0'; list += strspn(list, separators)) {
                size_t len = strcspn(list, separators);

                if (len == strlen(wanted) && strncasecmp(list, wanted, len) == 0)
                        return 1;
                list += len;
        }
        return 0;
}

/* RFC 9112 section 9.6. evhttp knows "close" only where nothing stands beside it. */
static int
asks_to_close(const struct http_request *request)
{
        const struct evkeyvalq *headers = evhttp_request_get_input_headers(request->evreq);
        const struct evkeyval *field;

        TAILQ_FOREACH(field, headers, next)
        {
                if (strcasecmp(field->key, "Connection") == 0 && lists(field->value, "close"))
                        return 1;
        }
        return 0;
}

/* As if the client had asked for it, and for nothing else: to HTTP/1.0 evhttp would say that it stays, if asked for that. */
static void
close_after(const struct http_request *request)
{
        struct evkeyvalq *headers = evhttp_request_get_input_headers(request->evreq);

        while (evhttp_remove_header(headers, "Connection") == 0)
                ;
        (void)evhttp_add_header(headers, "Connection", "close");
}

static void
add_headers(const struct http_request *request, const struct http_header *headers, size_t n_headers)
{
        struct evkeyvalq *out = evhttp_request_get_output_headers(request->evreq);
        const char *type = "application/json";

        for (size_t i = 0; i < n_headers; i++) {
                if (strcasecmp(headers[i].name, "Content-Type") == 0)
                        type = headers[i].value;
                else
                        (void)evhttp_add_header(out, headers[i].name, headers[i].value);
        }
        (void)evhttp_add_header(out, "Content-Type", type);
        (void)evhttp_add_header(out, "Date", date_now());
        (void)evhttp_add_header(out, "x-request-id", request->id);
        if (*request->closing || asks_to_close(request))
                close_after(request);
}

/* To HEAD goes what GET would get, but for the body (RFC 9110 section 9.3.2); evhttp would send that. Returns its length. */
static size_t
announce_length(const struct http_request *request, size_t len)
{
        char text[32];

        (void)snprintf(text, sizeof(text), "%zu", len);
        (void)evhttp_add_header(evhttp_request_get_output_headers(request->evreq), "Content-Length", text);
        return 0;
}

void
http_reply(struct http_request *request, int status, const struct http_header *headers, size_t n_headers,
           const char *body, size_t len)
{
        struct evhttp_connection *evcon = evhttp_request_get_connection(request->evreq);
        struct evbuffer *body_in = evhttp_request_get_input_buffer(request->evreq), *buffer = evbuffer_new();
        int failed;

        add_headers(request, headers, n_headers);
        if (evhttp_request_get_command(request->evreq) == EVHTTP_REQ_HEAD)
                len = announce_length(request, len);
        failed = buffer == NULL || evbuffer_add(buffer, body, len) != 0;
        (void)evbuffer_drain(body_in, evbuffer_get_length(body_in)); /* which gives its room back */
        if (failed) /* evhttp_send_error() frees the connection when memory fails there too */
                evhttp_send_reply(request->evreq, HTTP_INTERNAL, phrase_for(HTTP_INTERNAL), NULL);
        else
                evhttp_send_reply(request->evreq, status, phrase_for(status), buffer);
        connections_replying(request->connections, evcon);
        if (buffer != NULL)
                evbuffer_free(buffer);
        pool_free(request);
}
