#ifndef HTTP_BLANK_H
#define HTTP_BLANK_H

#include "http/framing.h"

/*
 * For framing.c alone. What evhttp is to read in place of the last byte of the line under way: mostly the byte itself. See
 * framing.h for what it cannot read. Bytes of chunk extensions and trailer fields are counted.
 */
char blank_last_byte(struct framing *framing);

#endif
