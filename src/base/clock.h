#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define CLOCK_RFC3339_SIZE 32

/* Milliseconds since the epoch, UTC; steps when the clock is set. */
int64_t clock_now_ms(void);

/* Milliseconds since an arbitrary point; never steps. For deadlines and intervals. */
int64_t clock_monotonic_ms(void);

/*
 * The same, up to 10 ms behind, but read in a tenth of the time: for what happens to every request. Not to be mixed with
 * clock_monotonic_ms() in one interval.
 */
int64_t clock_coarse_ms(void);

/* The same in microseconds, and in nanoseconds. */
int64_t clock_monotonic_us(void);
int64_t clock_monotonic_ns(void);

/* Block the calling thread so long, or until a signal is handled in it; 0 or less: not at all. */
void clock_sleep_ms(int64_t ms);

/* What clock_take_step() compares with. Begin with zeros. */
struct clock_watch {
        int64_t ahead_ms; /* of the clock that steps, before the one that does not */
        int is_known;
};

/* By how many milliseconds the clock was set since the last call, negative: back. The first call gives 0. */
int64_t clock_take_step(struct clock_watch *watch);

/**
 * clock_format_ms(ms, text), clock_format_s(s, text):
 * Write a time since the epoch as RFC 3339 in UTC, with and without milliseconds: 2026-11-21T03:04:05.678Z.
 * Years 0 to 9999; other times are held to that range. Returns text.
 */
char *clock_format_ms(int64_t ms, char text[CLOCK_RFC3339_SIZE]);
char *clock_format_s(int64_t s, char text[CLOCK_RFC3339_SIZE]);

/**
 * clock_is_utc_timestamp(text, len):
 * Whether the bytes are an RFC 3339 date-time in UTC: offset `Z` or `+00:00`, any fraction, real calendar day,
 * seconds to 60 (a leap second).
 */
int clock_is_utc_timestamp(const char *text, size_t len);

/* Read such a timestamp, to the millisecond (what is finer is cut off). Returns 0, or -1 when it is none. */
int clock_parse_ms(const char *text, size_t len, int64_t *ms) MUST_CHECK;

/* Likewise for one with any offset from UTC: 2026-11-21T04:04:05+01:00. */
int clock_parse_zoned_ms(const char *text, size_t len, int64_t *ms) MUST_CHECK;

#endif
