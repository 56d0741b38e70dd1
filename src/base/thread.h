#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

#include "base/compiler.h"

/* Wait for a thread to end. While that takes long, the log says what is waited for. */
void thread_join(pthread_t thread, const char *what);

/* Wait so long for a thread to end. Returns 0 when it has, -1 when it has not: it is then still to be joined or detached. */
int thread_join_within(pthread_t thread, int seconds) MUST_CHECK;

#endif
