#ifndef CLI_SAMPLE_H
#define CLI_SAMPLE_H

#define SAMPLE_ID_SIZE 37

/* A random UUID (RFC 9562, version 4). Returns id. */
char *sample_id(char id[SAMPLE_ID_SIZE]);

/**
 * sample_body(kind):
 * A made-up body for an event of a kind, as the service might send it: with the clearance record for a rejection, with
 * lines for an invoice, with a deadline for a reporting batch. Never the same twice. The caller frees it.
 */
char *sample_body(const char *kind);

#endif
