#include "http/proxy_header.h"

#include <string.h>

#define VERSION_2 0x20
#define COMMAND_LOCAL 0
#define COMMAND_PROXY 1
#define TCP_OVER_IPV4 0x11
#define TCP_OVER_IPV6 0x21
#define IPV4_ADDRESSES_LEN 12 /* source, destination, two ports */
#define IPV6_ADDRESSES_LEN 36

static const uint8_t signature[12] = {'\r', '\n', '\r', '\n', '\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

int
proxy_header_rest(const uint8_t head[PROXY_HEADER_LEN], size_t *len)
{
        unsigned command = head[12] & 0x0f;

        if (memcmp(head, signature, sizeof(signature)) != 0 || (head[12] & 0xf0) != VERSION_2)
                return -1;
        if (command != COMMAND_LOCAL && command != COMMAND_PROXY)
                return -1;
        *len = (size_t)head[14] << 8 | head[15];
        return *len > PROXY_HEADER_REST_MAX ? -1 : 0;
}

int
proxy_header_client(const uint8_t head[PROXY_HEADER_LEN], const uint8_t *rest, size_t len,
                    struct address *client)
{
        if ((head[12] & 0x0f) == COMMAND_LOCAL)
                return 0;
        if (head[13] == TCP_OVER_IPV4) {
                if (len < IPV4_ADDRESSES_LEN)
                        return -1;
                address_from_ipv4(rest, client);
                return 1;
        }
        if (head[13] == TCP_OVER_IPV6) {
                if (len < IPV6_ADDRESSES_LEN)
                        return -1;
                memcpy(client->bytes, rest, sizeof(client->bytes));
                return 1;
        }
        return 0;
}
