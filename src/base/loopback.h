#ifndef BASE_LOOPBACK_H
#define BASE_LOOPBACK_H

/**
 * loopback_is_host(host):
 * Whether the host of a URL is this machine for certain, so that plain http to it is no risk: localhost (RFC 6761 section
 * 6.3), 127.0.0.0/8 in dotted form, or [::1]. Case does not matter.
 */
int loopback_is_host(const char *host);

#endif
