#ifndef KAFKA_COMMIT_WATCHDOG_H
#define KAFKA_COMMIT_WATCHDOG_H

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
struct commit_watchdog;

/* Returns NULL with the reason. */
struct commit_watchdog *commit_watchdog_new(struct error *error) MUST_CHECK;

/* After the client was destroyed. NULL is harmless. */
void commit_watchdog_free(struct commit_watchdog *watchdog);

/* What librdkafka asks for by its socket_cb and closesocket_cb; from any thread. They return -1 with errno. */
int commit_watchdog_open(struct commit_watchdog *watchdog, int domain, int type, int protocol);
int commit_watchdog_close(struct commit_watchdog *watchdog, int fd);

/* A call begins that may come to wait, and ends. */
void commit_watchdog_begin(struct commit_watchdog *watchdog);
void commit_watchdog_end(struct commit_watchdog *watchdog);

#endif
