#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

/* From now on SIGINT and SIGTERM do not end the process, but are to be asked for: by commands that go on until then. */
void interrupt_watch(void);

/* Whether one of them has come. */
int interrupt_came(void);

#endif
