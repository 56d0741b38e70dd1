#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <pthread.h>

#include "base/compiler.h"

/**
 * process_open_standard_files():
 * Make sure that descriptors 0, 1 and 2 are open; call it before anything else is opened. Otherwise, if a
 * program is started with one closed, the first file or connection would get its number, and output would be
 * written there. Reading a closed standard input and writing a closed standard output still fail.
 */
void process_open_standard_files(void);

/* Wait for a thread to end. Every 10 s, log what the process is waiting for. */
void process_join(pthread_t thread, const char *what);

/**
 * process_join_within(thread, seconds):
 * Wait at most this long for a thread to end. Return 0, or -1 when it has not ended; the caller then still
 * has to join or detach it.
 */
int process_join_within(pthread_t thread, int seconds) MUST_CHECK;

/* Let this process open as many files as the system allows it: raise the soft limit to the hard one. */
void process_raise_descriptors(void);

#endif
