#include "base/loopback.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

int
loopback_is_host(const char *host)
{
        struct in_addr address;

        return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
               (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}
