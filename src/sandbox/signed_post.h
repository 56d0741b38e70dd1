#ifndef SANDBOX_SIGNED_POST_H
#define SANDBOX_SIGNED_POST_H

#include "base/compiler.h"
#include "model/signature.h"
#include "sandbox/transport.h"

/* One attempt of a delivery: signed with the time at which it starts. */
struct signed_post {
        const char *service; /* headers are x-<service>-signature and so on */
        const struct signature_key *key;
        const char *url;
        const char *webhook_id;
        const char *delivery_id;
        const void *body; /* must stay until it is done */
        size_t len;
};

/* As transport_start(). */
struct transfer *signed_post_start(struct transport *transport, const struct signed_post *post,
                                   transport_done *done, void *arg) MUST_CHECK;

#endif
