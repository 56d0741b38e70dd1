#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define CLOCK_RFC3339_SIZE 32

/* Return the milliseconds since the epoch, UTC. Steps when the clock is set. */
int64_t clock_now_ms(void);

/* Return the milliseconds since an arbitrary point. Never steps; for deadlines and intervals. */
int64_t clock_monotonic_ms(void);

/* The same, also counting the time in which the machine was suspended. */
int64_t clock_boot_ms(void);

/*
 * Like clock_monotonic_ms(), up to 10 ms behind, but ten times as fast, for use in every request. Do not mix
 * it with clock_monotonic_ms() in one interval.
 */
int64_t clock_coarse_ms(void);

/* Like clock_monotonic_ms(), in microseconds and nanoseconds. */
int64_t clock_monotonic_us(void);
int64_t clock_monotonic_ns(void);

/* Block the calling thread for this long, or until it handles a signal. Return at once if ms is 0 or less. */
void clock_sleep_ms(int64_t ms);

/**
 * clock_format_ms(ms, text), clock_format_s(s, text):
 * Write a time since the epoch as RFC 3339 in UTC, with and without milliseconds: 2026-11-21T03:04:05.678Z.
 * Times outside the years 0 to 9999 become the nearest time inside. Return text.
 */
char *clock_format_ms(int64_t ms, char text[CLOCK_RFC3339_SIZE]);
char *clock_format_s(int64_t s, char text[CLOCK_RFC3339_SIZE]);

/**
 * clock_is_utc_timestamp(text, len):
 * Return whether the bytes are an RFC 3339 date-time in UTC: offset `Z` or `+00:00`, any fraction, an
 * existing calendar day, up to 60 seconds (a leap second).
 */
int clock_is_utc_timestamp(const char *text, size_t len);

/* Read such a timestamp, truncated to milliseconds. Return 0, or -1 if it is not one. */
int clock_parse_ms(const char *text, size_t len, int64_t *ms) MUST_CHECK;

#endif
