#ifndef SANDBOX_STATE_H
#define SANDBOX_STATE_H

#include "base/compiler.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

/*
 * The state file: webhooks with their secrets, invoices with their idempotency keys, and pending deliveries,
 * as JSON, mode 0600.
 */

/* Restore the state from the file, if it exists. Returns 0, or -1 with the reason. */
int state_load(struct sandbox *sandbox, struct error *error) MUST_CHECK;

/* Replace the file. Returns 0, or -1 with the reason; then the old file is intact. */
int state_write(const struct sandbox *sandbox, struct error *error) MUST_CHECK;

/* Write the file now, if there is one. Returns 0, or -1 after logging; then it is retried later. */
int state_save(struct sandbox *sandbox);

/* Write the file within a quarter of a second. */
void state_save_soon(struct sandbox *sandbox);

#endif
