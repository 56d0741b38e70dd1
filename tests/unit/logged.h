#ifndef TESTS_LOGGED_H
#define TESTS_LOGGED_H

/* A checked fixture: log lines go into a pipe whose reading end is logged[0]. */
extern int logged[2];
void logged_setup(void);
void logged_teardown(void);

/* Return the log lines since the last call, valid until the next one. */
const char *logged_read(void);

#endif
