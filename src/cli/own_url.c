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

int
own_url_is_one(const struct config *config, const char *path, const char *url)
{
        struct own_url own;
        int is_one = 0;

        for (size_t i = 0; i < config->n_listen && !is_one; i++) {
                if (own_url_make(&config->listen[i], config->tls_certificate_file, path, &own) != 0)
                        continue;
                is_one = own.socket_path == NULL && strcmp(own.url, url) == 0;
                free(own.url);
        }
        return is_one;
}

int
own_url_address(const struct config_listen *listen, struct own_address *own)
{
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)&own->storage;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&own->storage;

        own->storage = listen->address;
        if (listen->address.ss_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_ANY))
                in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (listen->address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
                in6->sin6_addr = in6addr_loopback;
        own->info = (struct addrinfo){.ai_family = listen->address.ss_family,
                                      .ai_addr = (struct sockaddr *)&own->storage,
                                      .ai_addrlen = listen->address_len};
        return listen->address.ss_family != AF_UNIX && in->sin_port == 0 ? -1 : 0;
}
