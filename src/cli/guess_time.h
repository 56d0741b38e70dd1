#ifndef CLI_GUESS_TIME_H
#define CLI_GUESS_TIME_H

#include <stddef.h>
#include <stdint.h>

#define GUESS_TIME_SIZE 160

/* What may have been signed before the body, given the timestamp's header. */
struct guess_times {
        const char *header;
        int64_t seconds; /* -1: the header is no number of 10 digits, or of 13 */
        int in_ms;       /* the header has 13 */
        uint64_t reach;  /* so many seconds before and after are tried */
};

void guess_times_init(struct guess_times *times, const char *header, uint64_t reach);

/* How many there are. The first is what should have been signed: the header and a full stop. */
size_t guess_times_count(const struct guess_times *times);

/* The bytes before the body. Returns how many. */
size_t guess_times_head(const struct guess_times *times, size_t index, char head[GUESS_TIME_SIZE]);

/* How that differs from what should have been signed, as a clause. Returns text. */
char *guess_times_what(const struct guess_times *times, size_t index, char text[GUESS_TIME_SIZE]);

#endif
