#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>

#include "base/pool.h"
#include "http/connections.h"
#include "http/gate.h"

int
gate_is_written(const struct connection *connection)
{
        return evbuffer_get_length(bufferevent_get_output(connection->transport)) == 0;
}

/* Write what the socket takes at once; the event loop writes the rest. What fails does so again there. */
void
gate_write(struct connection *connection, const char *text, size_t len)
{
        ssize_t n = 0;

        if (connection->all->tls == NULL && gate_is_written(connection))
                n = send(connection->fd, text, len, MSG_NOSIGNAL);
        n = n < 0 ? 0 : n;
        if ((size_t)n < len && bufferevent_write(connection->transport, text + n, len - (size_t)n) != 0)
                connection->is_broken = 1;
}

/* No more answers follow. */
static void
linger(struct connection *connection)
{
        struct evbuffer *input = bufferevent_get_input(connection->transport);

        tls_say_goodbye(bufferevent_openssl_get_ssl(connection->transport));
        (void)shutdown(connection->fd, SHUT_WR);
        gate_enter(connection, GATE_LINGERING);
        (void)evbuffer_drain(input, evbuffer_get_length(input));
        (void)bufferevent_enable(connection->transport, EV_READ);
}

/* The answer has left the process. */
void
gate_end_reply(struct connection *connection)
{
        if (connection->closes || gate_evhttp_is_gone(connection)) {
                linger(connection);
                return;
        }
        if (connection->is_replied) {
                connection->is_replied = 0;
                bufferevent_trigger(connection->letter_box, EV_WRITE,
                                    0); /* evhttp gets ready for the next one */
        }
        gate_enter(connection, GATE_IDLE);
}

/* The answer is on its way. */
static void
await_written(struct connection *connection)
{
        if (connection->is_broken)
                gate_end(connection, HTTP_END_CLOSED);
        else if (gate_is_written(connection))
                gate_end_reply(connection);
        else
                gate_enter(connection, GATE_REPLYING);
}

/* Write the gate's answer to the request. */
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

/* Carry evhttp's answer out. */
void
gate_carry_answer(struct connection *connection)
{
        struct evbuffer *answer = bufferevent_get_output(connection->letter_box);
        struct evbuffer *out = bufferevent_get_output(connection->transport);

        if (connection->all->tls == NULL && gate_is_written(connection))
                (void)evbuffer_write(answer, connection->fd);
        if (evbuffer_get_length(answer) > 0 && evbuffer_add_buffer(out, answer) != 0)
                connection->is_broken = 1;
        await_written(connection);
}

/*
 * A handler may answer from anywhere, also while a producer that has failed reports on its records. So the next request is
 * read from the event loop.
 */
void
gate_send_evhttp_answer(struct connection *connection)
{
        if (connection->is_advancing)
                return; /* gate_advance() goes on when the handler has returned */
        gate_carry_answer(connection);
        if (connection->state != GATE_ENDED &&
            (connection->is_paused || connection->is_at_eof || connection->is_broken ||
             evbuffer_get_length(bufferevent_get_input(connection->transport)) > 0))
                gate_go_on_later(connection);
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
        if (request != NULL && request->answer != NULL) { /* it was refused before */
                request->head.closes = 1;
                gate_send_answer(connection);
                return;
        }
        is_head =
            strcmp(request == NULL ? connection->framing.head.method : request->head.method, "HEAD") == 0;
        connections_next_id(connection->all, id);
        connections_count_refused(connection, status, id);
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
