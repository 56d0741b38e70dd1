#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"

/*
 * The log: one line an event on stderr, `time level message key=value …`. A message says in words what happened; the
 * values follow as key=value pairs, each bare, without white space, quotes and `=`, or as log_quote() makes it. Under
 * systemd's journal (JOURNAL_STREAM names stderr) the time and the level's name are left out and the line begins with the
 * priority `<N>`. Any thread may log, and none waits for it: lines that stderr does not take are counted, and that is
 * told when it takes some again. No secret and no body is ever logged. What an outsider can cause at will: log_flood.h.
 */
enum log_level {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7
};

/* Find out where stderr leads, and ignore SIGPIPE and SIGXFSZ. Call once, before threads start. */
void log_init(void);

/* What is less urgent than level is not written from now on. The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* Read debug, info, notice, warning or error. Returns 0, or -1 when the name is none of them. */
int log_parse_level(const char *name, enum log_level *level) MUST_CHECK;

/* Whether a line of this level would be written: for lines that cost something to make. */
int log_is_on(enum log_level level);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
void log_text(enum log_level level, const char *format, va_list args) PRINTF_LIKE(2, 0);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Lines have been lost: say so, if stderr takes it now. To be called now and then. */
void log_tell_lost(void);

#define LOG_QUOTED_SIZE 512

/**
 * log_quote(text, quoted):
 * Make text safe as a value: in double quotes, with quotes and backslashes escaped, and as \xNN control characters and what
 * is not UTF-8, which the journal would not show as text; cut when long, between characters. Returns quoted.
 */
char *log_quote(const char *text, char quoted[LOG_QUOTED_SIZE]);

/* The same for bytes that somebody else owns. */
char *log_quote_bytes(const char *bytes, size_t len, char quoted[LOG_QUOTED_SIZE]);

/* The same, but bare when nothing in it asks for quotes, and `-` when there is nothing. */
char *log_value(const char *bytes, size_t len, char value[LOG_QUOTED_SIZE]);

#endif
