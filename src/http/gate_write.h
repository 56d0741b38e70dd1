#ifndef HTTP_GATE_WRITE_H
#define HTTP_GATE_WRITE_H

#include <stddef.h>

/* The gate answers requests. Private to http/. */

struct connection;

void gate_write(struct connection *connection, const char *text, size_t len);

/* Send the gate's own answer to the request, and free the request. */
void gate_send_answer(struct connection *connection);

/* Send evhttp's answer, now or, inside gate_advance(), when that continues. */
void gate_send_evhttp_answer(struct connection *connection);
void gate_carry_answer(struct connection *connection);

/* The socket has taken the whole answer: read the next request, or close. */
void gate_end_reply(struct connection *connection);

/* Answer with an error, or with the answer that the request already has, and close. */
void gate_refuse(struct connection *connection, int status, const char *reason);

#endif
