#include "cli/own_url.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/endpoint.h"

int
own_url_make(const struct config_listen *listen, const char *ca_file, const char *path, struct own_url *own)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&listen->address;
        int family = listen->address.ss_family;
        const char *scheme = ca_file == NULL ? "http" : "https";

        *own = (struct own_url){.ca_file = ca_file};
        if (family == AF_UNIX) {
                own->socket_path = endpoint_path(listen);
                own->url = mem_printf("%s://localhost%s", scheme, path);
                return 0;
        }
        if (in->sin_port == 0)
                return -1;
        if (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
                own->url = mem_printf("%s://[::1]:%d%s", scheme, ntohs(in6->sin6_port), path);
        else if (family == AF_INET && in->sin_addr.s_addr == INADDR_ANY)
                own->url = mem_printf("%s://127.0.0.1:%d%s", scheme, ntohs(in->sin_port), path);
        else
                own->url = mem_printf("%s://%s%s", scheme, listen->text, path);
        return 0;
}
