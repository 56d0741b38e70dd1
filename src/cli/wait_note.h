#ifndef CLI_WAIT_NOTE_H
#define CLI_WAIT_NOTE_H

/**
 * wait_note_begin(what, most_ms):
 * Print to stderr, if it is a terminal, that the program waits for `what`, at most this long, unless
 * wait_note_end() is called within a second and a half. Only one note at a time.
 */
void wait_note_begin(const char *what, long most_ms);
void wait_note_end(void);

#endif
