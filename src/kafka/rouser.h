#ifndef KAFKA_ROUSER_H
#define KAFKA_ROUSER_H

#include "base/compiler.h"
#include "base/error.h"

/*
 * Rouses a client of librdkafka that waits for what it will not ask for again. To send offsets to a transaction it asks three
 * times who coordinates the group; when nobody does yet, as after a pause of all brokers, it waits until the state of some
 * connection changes, for ever if need be, whatever time limit it was given (its issue 5456, open in 2.14). So when a call
 * takes long, all connections of the client are shut: it makes them anew, which changes their state, and asks again.
 *
 * A thread of its own sees to that, since the caller's is inside of librdkafka.
 */
struct rouser;

/* Returns NULL with the reason. */
struct rouser *rouser_new(struct error *error) MUST_CHECK;

/* After the client was destroyed. NULL is harmless. */
void rouser_free(struct rouser *rouser);

/* What librdkafka asks for by its socket_cb and closesocket_cb; from any thread. They return -1 with errno. */
int rouser_open(struct rouser *rouser, int domain, int type, int protocol);
int rouser_close(struct rouser *rouser, int fd);

/* A call begins that may come to wait, and ends. */
void rouser_begin(struct rouser *rouser);
void rouser_end(struct rouser *rouser);

#endif
