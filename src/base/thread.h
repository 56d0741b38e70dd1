#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Wait for a thread to end. While that takes long, the log says what is waited for. */
void thread_join(pthread_t thread, const char *what);

#endif
