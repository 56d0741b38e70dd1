#ifndef HTTP_FORWARDED_H
#define HTTP_FORWARDED_H

#include <stddef.h>

#include "base/address.h"

/* Whom to believe who the client is. */
struct http_trust {
        const struct network *networks;
        size_t n;
        int unix_sockets; /* whoever connects through one */
};

/* Whether a peer is to be believed; none, of a Unix-domain socket, too. */
int forwarded_trusts(const struct http_trust *trust, const struct address *peer);

/**
 * forwarded_client(trust, peer, list, len):
 * The client by the values of X-Forwarded-For, joined by commas: from the right, which the nearest proxy wrote, the first
 * address that is not a trusted proxy's. An entry that is no address ends the search: the one before it stands. The
 * peer's own address when it is not to be believed.
 */
struct address forwarded_client(const struct http_trust *trust, const struct address *peer, const char *list,
                                size_t len);

#endif
