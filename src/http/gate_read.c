#include "http/gate_read.h"

#include <string.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "base/pool.h"
#include "http/connections.h"
#include "http/gate.h"
#include "http/gate_write.h"
#include "http/request_state.h"

#define BODY_PIECE ((size_t)128 << 10) /* bytes of a body read before other connections get their turn */
#define NO_MEMORY "out of memory; send it again"
#define NO_ROOM "no room for the body; send it again"

/* Hand the request to evhttp. */
static void
deliver(struct connection *connection)
{
        static const char canonical[] = "GET / HTTP/1.1\r\n\r\n";
        struct evbuffer *letter = bufferevent_get_input(connection->letter_box);
        struct connections *all = connection->all;

        connection->was_genuine = 1;
        all->delivered = connection->request;
        if (!gate_evhttp_is_gone(connection) && evbuffer_add(letter, canonical, sizeof(canonical) - 1) == 0)
                bufferevent_trigger(connection->letter_box, EV_READ, 0);
        if (all->delivered == NULL)
                return;
        /*
         * When memory fails, evhttp writes an error of its own or frees the connection, and calls no handler.
         */
        all->delivered = NULL;
        gate_refuse(connection, 503, NO_MEMORY);
}

static void
end_request(struct connection *connection)
{
        const struct http_callbacks *callbacks = &connection->all->callbacks;
        struct http_request *request = connection->request;

        gate_enter(connection, GATE_HANDLING);
        request_trim_memory(request);
        if (request->answer == NULL && callbacks->on_complete != NULL)
                callbacks->on_complete(request, connection->all->arg);
        if (connection->is_broken)
                return;
        if (request->answer != NULL)
                gate_send_answer(connection);
        else
                deliver(connection);
}

/* Answer Expect: 100-continue (RFC 9110 §10.1.1). */
static void
send_continue(struct connection *connection)
{
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        struct head *head = &connection->request->head;

        if (!head->expects_continue || head->minor == 0 || connection->request->is_discarded)
                return;
        head->expects_continue = 0;
        if (connection->input_len == 0)
                gate_write(connection, text, sizeof(text) - 1);
}

/*
 * Return the bytes that the body reserves: its maximum, so that an admitted body can always be completed. If
 * chunked bodies reserved chunk by chunk, they could wait for each other.
 */
static uint64_t
reservation_for(const struct connection *connection)
{
        const struct head *head = &connection->request->head;

        return head->chunked ? connection->all->limits.max_body : head->content_length;
}

/* Allocate memory for the body, or for its next chunk. Returns 0, or -1 when memory fails. */
static int
make_room(struct connection *connection)
{
        struct http_request *request = connection->request;
        uint64_t needed = request->body_len + connection->framing.left, size = 2 * request->body_size;

        if (needed <= request->body_size)
                return 0;
        if (!request->head.chunked || size < needed)
                size = needed;
        else if (size > connection->all->limits.max_body)
                size = connection->all->limits.max_body;
        return request_resize_body(request, (size_t)size);
}

/* Begin to measure the speed of the body. */
static void
watch_speed(struct http_request *request)
{
        request->reserved_ms = request->mark_ms = clock_coarse_ms();
        request->mark_len = request->body_len;
        request->expected_ms = 0;
}

void
gate_take_granted(struct connection *connection)
{
        gate_enter(connection, GATE_BODY);
        connection->request->reserved = connection->request->waiter.bytes;
        watch_speed(connection->request);
        send_continue(connection);
}

/* The reservation does not fit: wait, or discard the body if it is optional. */
static void
await_memory(struct connection *connection, uint64_t bytes)
{
        struct connections *all = connection->all;

        if (connection->request->is_optional) {
                request_discard_body(connection->request);
                return;
        }
        gate_enter(connection, GATE_WAITING);
        if (memory_budget_wait(all->limits.budget, &connection->request->waiter, bytes,
                               &connection->request->client, all->wake_fd) != 0)
                gate_refuse(connection, 503, NO_ROOM);
}

/* Reserve memory for the body. */
static void
reserve(struct connection *connection)
{
        struct memory_budget *budget = connection->all->limits.budget;
        uint64_t bytes = reservation_for(connection);

        if (budget != NULL && memory_budget_reserve(budget, bytes) != 0) {
                await_memory(connection, bytes);
                return;
        }
        connection->request->reserved = budget == NULL ? 0 : bytes;
        watch_speed(connection->request);
        send_continue(connection);
}

/* Move bytes of the body from the input. Returns 1 when there were any. */
static int
take_body(struct connection *connection)
{
        struct http_request *request = connection->request;
        size_t len = connection->input_len;

        if (len > connection->framing.left)
                len = (size_t)connection->framing.left;
        if (len == 0)
                return 0;
        if (!request->is_discarded) {
                if (make_room(connection) != 0) {
                        gate_refuse(connection, 503, NO_MEMORY);
                        return 0;
                }
                memcpy(request->body + request->body_len, connection->input, len);
                request->body_len += len;
        }
        framing_skip(&connection->framing, len);
        gate_consume(connection, len);
        return 1;
}

/* The head of a request is complete. */
static void
begin_request(struct connection *connection, int is_too_large)
{
        const struct http_callbacks *callbacks = &connection->all->callbacks;
        struct http_request *request = request_new(connection);

        if (request == NULL) {
                gate_refuse(connection, 503, NO_MEMORY);
                return;
        }
        gate_enter(connection, GATE_BODY);
        connection->request = request;
        request->is_too_large = is_too_large;
        if (callbacks->on_head != NULL)
                callbacks->on_head(request, connection->all->arg);
        if (connection->is_broken)
                return;
        if (request->answer == NULL) {
                if (is_too_large)
                        gate_refuse(connection, 413, "the body is too large");
                else if (head_has_body(&request->head))
                        reserve(connection);
        } else if (request->answer_connection == ANSWER_CLOSES) {
                gate_send_answer(connection);
        } else {
                request_discard_body(request);
        }
}

static void
refuse_by_framing(struct connection *connection)
{
        const struct head_fault *fault = &connection->framing.fault;
        const char *reason = fault->reason;

        if (connection->all->limits.requires_proxy && fault->reason_behind_proxy != NULL)
                reason = fault->reason_behind_proxy;
        if (fault->status == 413 && connection->request == NULL)
                begin_request(connection, 1);
        else
                gate_refuse(connection, fault->status, reason);
}

void
gate_consume(struct connection *connection, size_t n)
{
        connection->input_len -= n;
        if (connection->input_len > 0) {
                connection->input += n;
                return;
        }
        connection->input = NULL;
        pool_free(connection->kept);
        connection->kept = NULL;
}

void
gate_keep_input(struct connection *connection)
{
        if (connection->input_len == 0 || connection->kept != NULL)
                return;
        connection->kept = pool_alloc(connection->input_len);
        if (connection->kept == NULL)
                connection->is_broken = 1;
        else
                connection->input = memcpy(connection->kept, connection->input, connection->input_len);
}

/* Read directly into the body. Returns as stream_read(). */
static ssize_t
receive_body(struct connection *connection)
{
        struct http_request *request = connection->request;
        uint64_t left = connection->framing.left;
        ssize_t n = stream_read(&connection->stream, request->body + request->body_len,
                                left < BODY_PIECE ? (size_t)left : BODY_PIECE);

        if (n > 0) {
                request->body_len += (size_t)n;
                framing_skip(&connection->framing, (uint64_t)n);
        }
        return n;
}

/* Read into the shared buffer. Returns as stream_read(). */
static ssize_t
receive_input(struct connection *connection)
{
        char *buffer = connection->all->buffer;
        ssize_t n = stream_read(&connection->stream, buffer, RECEIVE_SIZE);

        if (n > 0) {
                connection->input = buffer;
                connection->input_len = (size_t)n;
        }
        return n;
}

int
gate_receive(struct connection *connection)
{
        int is_body = connection->state == GATE_BODY && connection->framing.left > 0 &&
                      !connection->request->is_discarded;
        ssize_t n;

        if (connection->is_broken || connection->is_at_eof || connection->input_len > 0)
                return 0;
        if (is_body && make_room(connection) != 0) {
                gate_refuse(connection, 503, NO_MEMORY);
                return 0;
        }
        n = is_body ? receive_body(connection) : receive_input(connection);
        if (n == STREAM_END)
                connection->is_at_eof = 1;
        else if (n < 0)
                connection->is_broken = 1;
        return n != STREAM_LATER;
}

int
gate_read(struct connection *connection)
{
        size_t used;
        enum framing_verdict verdict;

        if (connection->input_len > 0 && connection->state == GATE_IDLE)
                gate_enter(connection, GATE_HEAD);
        verdict = framing_feed(&connection->framing, connection->input, connection->input_len, &used);
        gate_consume(connection, used);
        switch (verdict) {
        case FRAMING_MORE:
                if (!framing_is_inside(&connection->framing))
                        framing_clear(&connection->framing);
                return 0;
        case FRAMING_HEAD:
                begin_request(connection, 0);
                return 1;
        case FRAMING_DATA:
                return take_body(connection);
        case FRAMING_END:
                end_request(connection);
                return 1;
        case FRAMING_REFUSED:
                refuse_by_framing(connection);
                break;
        }
        return 1;
}
