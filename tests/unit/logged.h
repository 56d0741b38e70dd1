#ifndef TESTS_LOGGED_H
#define TESTS_LOGGED_H

/* What is logged goes into a pipe, and comes out of logged[0]: use both as a checked fixture. */
extern int logged[2];
void logged_setup(void);
void logged_teardown(void);

/* What was logged since the last call. Valid until the next. */
const char *logged_read(void);

#endif
