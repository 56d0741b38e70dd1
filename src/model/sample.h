#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

/**
 * sample_body(kind):
 * A made-up body for an event of a kind, as the service might send it: with the clearance record for a
 * rejection, with lines for an invoice, with a deadline for a reporting batch. Never the same twice. For
 * `gatepost send` and the sandbox. The caller frees it.
 */
char *sample_body(const char *kind);

#endif
