#ifndef HTTP_REFUSAL_H
#define HTTP_REFUSAL_H

#include <event2/bufferevent.h>

#include "base/compiler.h"

/*
 * Takes a connection away from evhttp to answer it with an error that evhttp cannot write, and to close it: the answer is
 * sent, the writing side is shut, what the client still sends is read and thrown away for a moment, so that it sees the
 * answer and not a reset (RFC 9112 section 9.6). Then evhttp is told of an error and releases the connection. Where the
 * connection does not linger, that is at once.
 */
struct refusal;

/**
 * refusal_new(bev, status, reason, request_id, lingers):
 * Begin. The reason becomes the answer's message, where the status does not say enough. evhttp's callbacks on bev are put
 * aside and called once more at the end, which may be within this call's event loop pass only when the client has gone.
 * Returns NULL when memory fails; then nothing has changed.
 */
struct refusal *refusal_new(struct bufferevent *bev, int status, const char *reason, const char *request_id,
                            int lingers) MUST_CHECK;

/* bev is going away, whoever decided that. NULL is harmless. */
void refusal_free(struct refusal *refusal);

/* The whole of such an answer, which closes the connection. NULL when memory fails. The caller frees it. */
char *refusal_answer(int status, const char *reason, const char *request_id, size_t *len) MUST_CHECK;

#endif
