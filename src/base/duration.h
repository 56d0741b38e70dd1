#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdio.h>

/* Write a time as a person says it: 3 d 4 h, 5 h 12 min, 47 s. What is no time, or longer than any, is 0 s. */
void duration_print(FILE *out, double seconds);

/* Write a short or long time with one unit and two digits or more: 1.2 ms, 850 µs, 12 s, 34 h. */
void duration_print_precise(FILE *out, double seconds);

#endif
