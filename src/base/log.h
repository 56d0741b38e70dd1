#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <pthread.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * The log: one line an event on stderr, `time level message key=value …`. A message says in words what happened; the
 * values follow as key=value pairs. Under systemd's journal (JOURNAL_STREAM names stderr) the time is left out and the
 * line begins with the priority `<N>`. Any thread may log. No secret and no body is ever logged.
 */
enum log_level {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7
};

/* Find out where stderr leads. Call once, before threads start. */
void log_init(void);

/* What is less urgent than level is not written. The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)

#define LOG_QUOTED_SIZE 256

/**
 * log_quote(text, quoted):
 * Make text safe as a value: in double quotes, with quotes, backslashes and control bytes escaped, cut when long.
 * Returns quoted.
 */
char *log_quote(const char *text, char quoted[LOG_QUOTED_SIZE]);

/*
 * A damper for one kind of line that an outsider can cause at will: lets one line a second through and counts the rest.
 * Zero-initialise it with LOG_FLOOD_INIT; any thread may use it.
 */
struct log_flood {
        pthread_mutex_t mutex;
        int64_t last_ms;
        uint64_t n_held_back;
};

#define LOG_FLOOD_INIT \
        { \
                PTHREAD_MUTEX_INITIALIZER, 0, 0 \
        }

/**
 * log_flood_pass(flood, n):
 * Returns 1 when a line may be written now, with *n set to how many events it stands for (this one included); 0 when
 * this event is only counted.
 */
int log_flood_pass(struct log_flood *flood, uint64_t *n) MUST_CHECK;

#endif
