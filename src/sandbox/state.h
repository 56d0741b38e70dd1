#ifndef SANDBOX_STATE_H
#define SANDBOX_STATE_H

#include "base/compiler.h"
#include "base/error.h"

struct sandbox;

/*
 * The state file: subscriptions with their secrets, invoices with their idempotency keys, and deliveries that are not done,
 * as JSON, mode 0600.
 */

/* Read it, if it is there, and go on with what is in it. Returns 0, or -1 with the reason. */
int state_load(struct sandbox *sandbox, const char *path, struct error *error) MUST_CHECK;

/* Write it anew. Returns 0, or -1 with the reason; then the old one is still there. */
int state_save(const struct sandbox *sandbox, const char *path, struct error *error) MUST_CHECK;

#endif
