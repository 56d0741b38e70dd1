#ifndef HTTP_TAP_H
#define HTTP_TAP_H

#include <event2/buffer.h>

/* On a connection's input buffer, an evbuffer_cb_func: judges bytes that have come in, before evhttp sees them. arg is the connection. */
void tap_on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg);

#endif
