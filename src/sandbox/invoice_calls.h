#ifndef SANDBOX_INVOICE_CALLS_H
#define SANDBOX_INVOICE_CALLS_H

#include "sandbox/call.h"

/* POST /v1/invoices: a submission, or the repetition of one under its idempotency key. */
void invoices_submit(const struct call *call);

/* GET /v1/invoices/{id}: the status poll. */
void invoices_poll(const struct call *call);

#endif
