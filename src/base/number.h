#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

#define NUMBER_TEXT_SIZE 32

/**
 * number_parse(text, min, max, value, error):
 * Read a whole decimal number in [min, max]: digits only, no sign, no space. Return 0, or -1 with the reason.
 */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *value,
                 struct error *error) MUST_CHECK;

/**
 * number_parse_size(text, min, max, bytes, error):
 * Read a size with a unit, B, KiB, MiB or GiB: `1MiB`. min and max are in bytes. Return 0, or -1 with the
 * reason.
 */
int number_parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes,
                      struct error *error) MUST_CHECK;

/**
 * number_parse_duration(text, min, max, ms, error):
 * Read a duration with a unit, ms, s, min, h or d: `300s`. min and max are in milliseconds. Return 0, or -1
 * with the reason.
 */
int number_parse_duration(const char *text, uint64_t min, uint64_t max, uint64_t *ms,
                          struct error *error) MUST_CHECK;

/* Write a duration with the largest unit that divides it. Return text. */
char *number_format_duration(uint64_t ms, char text[NUMBER_TEXT_SIZE]);

/*
 * Write a time span for people: 3 d 4 h, 5 h 12 min, 47 s; 0 s if it is not a number, negative, or beyond
 * 1e15 s. Return text.
 */
char *number_format_span(double seconds, char text[NUMBER_TEXT_SIZE]);

#endif
