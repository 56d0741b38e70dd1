#ifndef HTTP_GATE_READ_H
#define HTTP_GATE_READ_H

#include <stddef.h>

/* The gate reads requests. Private to http/. */

struct connection;

/*
 * Read from the stream, unless unparsed input is left. Returns 1 when bytes or the end of the stream were
 * read.
 */
int gate_receive(struct connection *connection);

/*
 * Parse input up to the next event of the framing and act on it. Returns 1 when the next call may find
 * another.
 */
int gate_read(struct connection *connection);

/* Remove n parsed bytes from the input. */
void gate_consume(struct connection *connection, size_t n);

/* Copy unparsed input out of the buffer that all connections share. */
void gate_keep_input(struct connection *connection);

/* Continue a connection in GATE_WAITING whose memory has been granted. */
void gate_take_granted(struct connection *connection);

#endif
