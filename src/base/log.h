#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * The log: one line per event on stderr, `time level message key=value …`. The message says what happened. A
 * value is written bare, if it has no white space, quotes or `=`, or as log_quote() writes it. Under
 * systemd's journal (JOURNAL_STREAM names stderr) the line begins with the priority `<N>` instead of the time
 * and the level. Any thread may log, and logging never blocks: lines that cannot be written are counted, and
 * the count is logged once stderr accepts lines again. Never log a secret or a body. Use log_flood.h for
 * events that an outsider can cause at will.
 */
enum log_level {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7
};

/* Find out whether stderr is the journal, and ignore SIGPIPE and SIGXFSZ. Call once, before threads start. */
void log_init(void);

/* Write only lines of this level or a more urgent one. The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* Read debug, info, notice, warning or error. Return 0, or -1 for any other name. */
int log_parse_level(const char *name, enum log_level *level) MUST_CHECK;

/* Return whether lines of this level are written, to avoid work for lines that are not. */
int log_is_on(enum log_level level);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Log the number of lost lines, if there are any and stderr accepts it. Call this regularly. */
void log_report_lost(void);

#define LOG_QUOTED_SIZE 1024

/**
 * log_quote(text, quoted):
 * Make a text safe as a value: in double quotes, with quotes and backslashes escaped, and with \xNN for
 * control characters and bytes that are not UTF-8, because the journal does not show such lines as text.
 * Truncate long texts between characters. Return quoted.
 */
char *log_quote(const char *text, char quoted[LOG_QUOTED_SIZE]);

/* The same for bytes. */
char *log_quote_bytes(const char *bytes, size_t len, char quoted[LOG_QUOTED_SIZE]);

/* The same, but without quotes if none are needed, and `-` if len is 0. */
char *log_value(const char *bytes, size_t len, char value[LOG_QUOTED_SIZE]);

#endif
