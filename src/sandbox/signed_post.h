#ifndef SANDBOX_SIGNED_POST_H
#define SANDBOX_SIGNED_POST_H

#include "base/compiler.h"
#include "model/signature.h"
#include "sandbox/transport.h"

/* One attempt of a delivery, signed at a time. */
struct signed_post {
        const char *service; /* headers are x-<service>-signature and so on */
        const struct signature_key *key;
        const char *url;
        const char *webhook_id;
        const char *delivery_id;
        int64_t timestamp; /* in seconds since the epoch */
        const void *body;  /* must stay until it is done */
        size_t len;
};

/* Whether the text can stand for <service>: 1 to 32 lowercase letters, digits and hyphens; and for an id: 1 to 64. */
int signed_post_is_service(const char *text);
int signed_post_is_id(const char *text);

/* As transport_start(). */
struct transfer *signed_post_start(struct transport *transport, const struct signed_post *post,
                                   transport_done *done, void *arg) MUST_CHECK;

#endif
