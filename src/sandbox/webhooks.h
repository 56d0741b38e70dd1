#ifndef SANDBOX_WEBHOOKS_H
#define SANDBOX_WEBHOOKS_H

#include "sandbox/call.h"

/* GET /v1/webhooks: those that the key may see. */
void webhooks_list(const struct call *call);

/* POST /v1/webhooks: one for the key's entity, or for all. */
void webhooks_add(const struct call *call);

/* DELETE /v1/webhooks/{id}: what is on its way to it is dropped. */
void webhooks_remove(const struct call *call);

#endif
