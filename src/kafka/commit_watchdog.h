#ifndef KAFKA_COMMIT_WATCHDOG_H
#define KAFKA_COMMIT_WATCHDOG_H

#include "base/compiler.h"
#include "base/error.h"

/*
 * Unblocks a call of librdkafka that hangs. To send offsets to a transaction, librdkafka looks for the
 * group's coordinator three times; if there is none yet, as after a pause of all brokers, it waits until the
 * state of some connection changes, possibly forever, regardless of the call's time limit (issue 5456, open
 * in 2.14). So after 10 s in a call, shut down all connections of the client: it reconnects, which changes
 * their state, and looks again. A separate thread does this, since the caller's is inside librdkafka.
 */
struct commit_watchdog;

/* Returns NULL with the reason. */
struct commit_watchdog *commit_watchdog_new(struct error *error) MUST_CHECK;

/* Call this after the client was destroyed. NULL is harmless. */
void commit_watchdog_free(struct commit_watchdog *watchdog);

/* For librdkafka's socket_cb and closesocket_cb; from any thread. Return -1 with errno on failure. */
int commit_watchdog_open(struct commit_watchdog *watchdog, int domain, int type, int protocol);
int commit_watchdog_close(struct commit_watchdog *watchdog, int fd);

/* A call that may hang begins, or has ended. */
void commit_watchdog_begin(struct commit_watchdog *watchdog);
void commit_watchdog_end(struct commit_watchdog *watchdog);

#endif
