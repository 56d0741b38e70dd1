#ifndef HTTP_GATE_ACCEPT_H
#define HTTP_GATE_ACCEPT_H

/* A connection from the accept to its first request. Private to http/. */

struct connection;

/* Begin a connection whose letter box evhttp is about to take; gate_attach() follows from the event loop. */
void gate_accept(struct connection *connection);
void gate_attach(struct connection *connection);

/* Continue to read the PROXY protocol header; continue the TLS handshake. */
void gate_read_proxy(struct connection *connection);
void gate_shake_hands(struct connection *connection);

#endif
