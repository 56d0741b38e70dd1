#ifndef BASE_LOG_FLOOD_H
#define BASE_LOG_FLOOD_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/compiler.h"
#include "base/log.h"

/*
 * A damper for one kind of line that an outsider can cause at will: one line a second is written, and ends in ` n=` with the
 * number of events that it stands for. What was held back when a flood ends is told by log_flood_tell(), as the last of
 * them said it. Zero-initialise it; any thread may use it.
 */
struct log_flood {
        LIST_ENTRY(log_flood) entry; /* in the list of those that hold something back */
        int64_t last_ms;             /* monotonic time of the last line; 0: none */
        uint64_t n_held_back;
        enum log_level level;
        char *text; /* of the last event held back */
};

/* An event of this kind: write a line of it, or hold it back. */
void log_flood(struct log_flood *flood, enum log_level level, const char *format, ...) PRINTF_LIKE(3, 4);

/* Tell what has been held back for a second. To be called every second or so. */
void log_flood_tell(void);

/* The flood goes: tell what it holds back. */
void log_flood_end(struct log_flood *flood);

/* Tell what all floods hold back: the process ends. */
void log_flood_end_all(void);

#endif
