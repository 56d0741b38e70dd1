#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * An IP address without a port. IPv4 addresses are mapped to IPv6 (RFC 4291 section 2.5.5.2). All zero: none.
 */
struct address {
        uint8_t bytes[16];
};

/* All addresses that share the first prefix_len bits (of 128) of the address. */
struct network {
        struct address address;
        unsigned prefix_len;
};

#define ADDRESS_TEXT_SIZE 46

/* Take the address of a socket address; none for a Unix-domain socket. */
void address_from_socket(const struct sockaddr *from, struct address *address);
void address_from_ipv4(const uint8_t bytes[4], struct address *address);

/* Read 192.0.2.1 or 2001:db8::1. Return 0 or -1. */
int address_parse(const char *text, size_t len, struct address *address) MUST_CHECK;

/* Write the usual form, or `-` for none. Return text. */
const char *address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

/**
 * address_is_loopback_host(host):
 * Return whether the host of a URL is certainly this machine, so that plain http to it is safe: localhost
 * (RFC 6761 section 6.3), 127.0.0.0/8 in dotted form, or [::1]. Case does not matter.
 */
int address_is_loopback_host(const char *host);

int address_is_none(const struct address *address);
int address_is_ipv4(const struct address *address);

/* Return the address with all bits after the first prefix_len (of 128) cleared. */
struct address address_truncated(const struct address *address, unsigned prefix_len);

/**
 * network_parse(text, network, error):
 * Read 192.0.2.0/24, 2001:db8::/32 or a single address. Bits after the prefix must be 0. Return 0, or -1 with
 * the reason.
 */
int network_parse(const char *text, struct network *network, struct error *error) MUST_CHECK;
int network_contains(const struct network *network, const struct address *address);

#endif
