#ifndef HTTP_SPARE_H
#define HTTP_SPARE_H

#include "base/compiler.h"

/*
 * A descriptor held in reserve, for when there is no other: a connection that cannot be had can still be accepted, told so
 * and closed, where it would wait for an answer that does not come.
 */

/* Returns it, or -1. */
int spare_open(void);
void spare_close(int spare);

/**
 * spare_turn_away(spare, listener, answer):
 * Accept a connection by means of the spare, write the answer if that is not NULL, and close it. Returns the spare again,
 * or -1 when it was lost to somebody else.
 */
int spare_turn_away(int spare, int listener, const char *answer) MUST_CHECK;

#endif
