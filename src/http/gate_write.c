#include "http/gate_write.h"

#include <string.h>

#include <event2/buffer.h>

#include "base/pool.h"
#include "http/connections.h"
#include "http/gate.h"
#include "http/request_state.h"

void
gate_write(struct connection *connection, const char *text, size_t len)
{
        if (stream_write(&connection->stream, text, len) != 0)
                connection->is_broken = 1;
}

/* The last answer has been sent. */
static void
linger(struct connection *connection)
{
        stream_end_writing(&connection->stream);
        gate_enter(connection, GATE_LINGERING);
        gate_advance_later(connection);
}

void
gate_end_reply(struct connection *connection)
{
        if (connection->closes || gate_evhttp_is_gone(connection)) {
                linger(connection);
                return;
        }
        if (connection->is_replied) {
                connection->is_replied = 0;
                bufferevent_trigger(connection->letter_box, EV_WRITE, 0); /* evhttp awaits the next request */
        }
        gate_enter(connection, GATE_IDLE);
}

/* The answer has been written, to the socket or to the stream's buffer. */
static void
await_written(struct connection *connection)
{
        if (connection->is_broken)
                gate_end(connection, HTTP_END_CLOSED);
        else if (stream_is_flushed(&connection->stream))
                gate_end_reply(connection);
        else
                gate_enter(connection, GATE_REPLYING);
}

void
gate_send_answer(struct connection *connection)
{
        struct http_request *request = connection->request;

        if (request->head.closes || connection->all->is_stopping)
                request_close_after(request);
        connection->closes = request->answer_connection == ANSWER_CLOSES;
        gate_write(connection, request->answer, request->answer_len);
        connection->request = NULL;
        request_free(request);
        await_written(connection);
}

/* Copy evhttp's answer from the letter box to the stream. */
void
gate_carry_answer(struct connection *connection)
{
        struct evbuffer *answer = bufferevent_get_output(connection->letter_box);
        size_t len = evbuffer_get_length(answer);
        const unsigned char *text = evbuffer_pullup(answer, -1);

        if (len > 0 && text == NULL)
                connection->is_broken = 1;
        else if (len > 0)
                gate_write(connection, (const char *)text, len);
        (void)evbuffer_drain(answer, len);
        await_written(connection);
}

/*
 * A handler may answer in any callback, even while a failed producer reports on its records. So the next
 * request is read from the event loop.
 */
void
gate_send_evhttp_answer(struct connection *connection)
{
        if (connection->is_advancing)
                return; /* gate_advance() carries the answer when the handler has returned */
        gate_carry_answer(connection);
        if (connection->state != GATE_ENDED &&
            (connection->is_at_eof || connection->is_broken || connection->input_len > 0 ||
             stream_has_decrypted(&connection->stream)))
                gate_advance_later(connection);
}

void
gate_refuse(struct connection *connection, int status, const char *reason)
{
        struct http_request *request = connection->request;
        struct http_error error = answer_refusal(status, reason);
        char id[ANSWER_ID_SIZE], *answer;
        size_t len;
        int is_head;

        connection->end = HTTP_END_REFUSED;
        if (request != NULL && request->answer != NULL) { /* on_head has refused it */
                request->head.closes = 1;
                gate_send_answer(connection);
                return;
        }
        is_head =
            strcmp(request == NULL ? connection->framing.head.method : request->head.method, "HEAD") == 0;
        connections_next_id(connection->all, id);
        connections_count_refused(connection, &error, id);
        gate_drop_request(connection);
        connection->closes = 1;
        answer = answer_error(&error, id, ANSWER_CLOSES, is_head, &len);
        if (answer == NULL) {
                gate_end(connection, HTTP_END_REFUSED);
                return;
        }
        gate_write(connection, answer, len);
        pool_free(answer);
        await_written(connection);
}
