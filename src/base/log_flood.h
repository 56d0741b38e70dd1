#ifndef BASE_LOG_FLOOD_H
#define BASE_LOG_FLOOD_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/compiler.h"
#include "base/log.h"

/*
 * A rate limit for one kind of line that an outsider can cause at will. At most one line a second is written.
 * A line that reports several events has the text of the last one, and ends in ` n=` and their number. Events
 * that are held back when a flood ends are logged by log_flood_report(). Zero-initialise it; any thread may
 * use it.
 */
struct log_flood {
        LIST_ENTRY(log_flood) entry; /* in the list of floods that hold events back */
        int64_t last_ms;             /* monotonic time of the last line; 0: none */
        uint64_t n_held_back;
        enum log_level level;
        char *text; /* of the last event held back */
};

/* Log an event, or hold it back. */
void log_flood(struct log_flood *flood, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);

/* Log the events that have been held back for a second. Call this about every second. */
void log_flood_report(void);

/* Log the events that the flood holds back. Call this before freeing it. */
void log_flood_end(struct log_flood *flood);

/* Log the events that all floods hold back. Call this before the process ends. */
void log_flood_end_all(void);

#endif
