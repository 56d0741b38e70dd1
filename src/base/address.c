#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

#define IPV4_OFFSET 12 /* bytes before the IPv4 address in a mapped one */
#define IPV4_BITS 96   /* the same in bits */

static const uint8_t mapped[IPV4_OFFSET] = {[10] = 0xff, [11] = 0xff};

void
address_from_ipv4(const uint8_t bytes[4], struct address *address)
{
        memcpy(address->bytes, mapped, IPV4_OFFSET);
        memcpy(address->bytes + IPV4_OFFSET, bytes, 4);
}

void
address_from_socket(const struct sockaddr *from, struct address *address)
{
        memset(address, 0, sizeof(*address));
        if (from->sa_family == AF_INET)
                address_from_ipv4((const uint8_t *)&((const struct sockaddr_in *)from)->sin_addr, address);
        else if (from->sa_family == AF_INET6)
                memcpy(address->bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
}

int
address_parse(const char *text, size_t len, struct address *address)
{
        char copy[ADDRESS_TEXT_SIZE];
        uint8_t ipv4[4];

        if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len) != NULL)
                return -1;
        memcpy(copy, text, len);
        copy[len] = '\0';
        if (inet_pton(AF_INET, copy, ipv4) == 1)
                address_from_ipv4(ipv4, address);
        else if (inet_pton(AF_INET6, copy, address->bytes) != 1)
                return -1;
        return 0;
}

int
address_is_loopback_host(const char *host)
{
        struct in_addr address;

        return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
               (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

int
address_is_none(const struct address *address)
{
        static const struct address none;

        return memcmp(address, &none, sizeof(none)) == 0;
}

int
address_is_ipv4(const struct address *address)
{
        return memcmp(address->bytes, mapped, IPV4_OFFSET) == 0;
}

const char *
address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
        if (address_is_none(address))
                return strcpy(text, "-");
        if (address_is_ipv4(address))
                return inet_ntop(AF_INET, address->bytes + IPV4_OFFSET, text, ADDRESS_TEXT_SIZE);
        return inet_ntop(AF_INET6, address->bytes, text, ADDRESS_TEXT_SIZE);
}

struct address
address_truncated(const struct address *address, unsigned prefix_len)
{
        struct address result = *address;

        for (unsigned bit = prefix_len; bit < 128; bit++)
                result.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        return result;
}

int
network_parse(const char *text, struct network *network, struct error *error)
{
        size_t len = strcspn(text, "/");
        unsigned before;
        struct address first;
        uint64_t bits;

        if (address_parse(text, len, &network->address) != 0)
                return error_set(
                    error,
                    "'%.60s' is not an address; write 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32",
                    text);
        before = address_is_ipv4(&network->address) ? IPV4_BITS : 0;
        bits = 128 - before;
        if (text[len] == '/' && number_parse(text + len + 1, 0, 128 - before, &bits, error) != 0)
                return error_prefix(error, "prefix length in '%.60s'", text);
        network->prefix_len = before + (unsigned)bits;
        first = address_truncated(&network->address, network->prefix_len);
        if (memcmp(&first, &network->address, sizeof(first)) != 0) {
                char name[ADDRESS_TEXT_SIZE];

                return error_set(error, "'%.60s' has bits set after its prefix; write %s/%u", text,
                                 address_format(&first, name), (unsigned)bits);
        }
        return 0;
}

int
network_contains(const struct network *network, const struct address *address)
{
        struct address first = address_truncated(address, network->prefix_len);

        return memcmp(&first, &network->address, sizeof(first)) == 0;
}
