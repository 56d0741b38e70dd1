#include "config/endpoint.h"

#include <arpa/inet.h>
#include <libgen.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/address.h"
#include "base/mem.h"
#include "base/number.h"

#define HOST_MAX 253 /* RFC 1035 section 2.3.4 */

static int
parse_unix(const char *path, struct config_listen *listen, struct error *error)
{
        struct sockaddr_un *address = (struct sockaddr_un *)&listen->address;
        size_t len = strlen(path);

        if (path[0] != '/')
                return error_set(error, "unix:%.64s: a socket's path begins with a slash", path);
        if (path[len - 1] == '/')
                return error_set(error, "unix:%.64s: a socket's path does not end with a slash", path);
        if (len >= sizeof(address->sun_path))
                return error_set(error, "a socket's path has at most %zu bytes",
                                 sizeof(address->sun_path) - 1);
        address->sun_family = AF_UNIX;
        memcpy(address->sun_path, path, len + 1);
        listen->address_len = sizeof(*address);
        return 0;
}

static int
parse_address(const char *host, in_port_t port, struct config_listen *listen)
{
        struct sockaddr_in *in = (struct sockaddr_in *)&listen->address;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&listen->address;
        size_t len = strlen(host);

        if (host[0] == '[' && len > 2 && host[len - 1] == ']') {
                char *inner = mem_strndup(host + 1, len - 2);
                int ok = inet_pton(AF_INET6, inner, &in6->sin6_addr) == 1 &&
                         !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && /* not possible with IPV6_V6ONLY */
                         !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);

                in6->sin6_family = AF_INET6;
                in6->sin6_port = htons(port);
                listen->address_len = sizeof(*in6);
                free(inner);
                return ok ? 0 : -1;
        }
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        listen->address_len = sizeof(*in);
        if (strcmp(host, "*") == 0)
                return 0; /* 0.0.0.0 */
        return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : -1;
}

#define ENDPOINT_FORMS "write 127.0.0.1:8080, [::1]:8080, *:8080 or unix:PATH"

/* Say why a text is not an address and a port. */
static int
fail(const char *text, struct error *error)
{
        const char *colon = strrchr(text, ':'), *port = colon == NULL ? "" : colon + 1;
        size_t digits = strspn(port, "0123456789");

        if (strncasecmp(text, "[fe80:", 6) == 0)
                return error_set(
                    error,
                    "'%.100s': a link-local address needs an interface, which cannot be named here; "
                    "use another address of this machine, or [::]",
                    text);
        if (strchr(text, ',') != NULL)
                return error_set(error, "'%.100s': listen takes one address and may be repeated", text);
        if (strstr(text, "://") != NULL)
                return error_set(error, "'%.100s' is a URL; " ENDPOINT_FORMS, text);
        if (text[0] == '/')
                return error_set(error, "'%.100s': write unix:%.100s for a socket's path", text, text);
        if (*text != '\0' && text[strspn(text, ":") + strspn(text + strspn(text, ":"), "0123456789")] == '\0')
                return error_set(error, "'%.100s' has no address; " ENDPOINT_FORMS, text);
        if (colon == NULL || *port == '\0')
                return error_set(error, "'%.100s' has no port; " ENDPOINT_FORMS, text);
        if (port[digits] != '\0')
                return error_set(error, "'%.100s': the port '%.20s' is not a number; " ENDPOINT_FORMS, text,
                                 port);
        if (digits > 5 || strtoul(port, NULL, 10) > UINT16_MAX)
                return error_set(error, "'%.100s': the port %.20s is above 65535", text, port);
        return error_set(error, "'%.100s' has no numeric address; " ENDPOINT_FORMS, text);
}

/* Return whether it is a multicast or broadcast address: TCP can bind to it, and nothing connects to it. */
static int
is_shared(const struct config_listen *listen)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&listen->address;
        in_addr_t address = ntohl(in->sin_addr.s_addr);

        return listen->address.ss_family == AF_INET ? IN_MULTICAST(address) || address == INADDR_BROADCAST
                                                    : IN6_IS_ADDR_MULTICAST(&in6->sin6_addr);
}

int
endpoint_parse(const char *text, struct config_listen *listen, struct error *error)
{
        const char *colon = strrchr(text, ':');
        uint64_t port;
        char *host;
        int result;

        memset(listen, 0, sizeof(*listen));
        if (strncmp(text, "unix:", 5) == 0) {
                result = parse_unix(text + 5, listen, error);
        } else if (colon == NULL || number_parse(colon + 1, 0, UINT16_MAX, &port, error) != 0) {
                result = fail(text, error);
        } else {
                host = mem_strndup(text, (size_t)(colon - text));
                result = parse_address(host, (in_port_t)port, listen) != 0 ? fail(text, error) : 0;
                if (result == 0 && is_shared(listen))
                        result =
                            error_set(error, "'%.100s' is a multicast or broadcast address; " ENDPOINT_FORMS,
                                      text);
                free(host);
        }
        if (result == 0)
                listen->text = mem_strdup(text);
        return result;
}

/* Return whether it is 0.0.0.0 or [::], which bind with IPV6_V6ONLY, so that they do not conflict. */
static int
is_any(const struct config_listen *listen)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&listen->address;

        return listen->address.ss_family == AF_INET ? in->sin_addr.s_addr == INADDR_ANY
                                                    : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* Return whether two paths of sockets are the same, also if they are written in different ways. */
static int
is_same_path(const char *a, const char *b)
{
        char *path_a = mem_strdup(a), *path_b = mem_strdup(b);
        char *real_a = realpath(dirname(path_a), NULL), *real_b = realpath(dirname(path_b), NULL);
        int is_same = strcmp(a, b) == 0 || (real_a != NULL && real_b != NULL && strcmp(real_a, real_b) == 0 &&
                                            strcmp(strrchr(a, '/'), strrchr(b, '/')) == 0);

        free(real_a);
        free(real_b);
        free(path_a);
        free(path_b);
        return is_same;
}

const char *
endpoint_path(const struct config_listen *listen)
{
        return listen->address.ss_family == AF_UNIX ? ((const struct sockaddr_un *)&listen->address)->sun_path
                                                    : NULL;
}

int
endpoint_conflicts(const struct config_listen *a, const struct config_listen *b)
{
        in_port_t port = ((const struct sockaddr_in *)&a->address)->sin_port; /* where sin6_port is, too */

        if (a->address.ss_family != b->address.ss_family)
                return 0;
        if (a->address.ss_family == AF_UNIX)
                return is_same_path(((const struct sockaddr_un *)&a->address)->sun_path,
                                    ((const struct sockaddr_un *)&b->address)->sun_path);
        if (port == 0 || port != ((const struct sockaddr_in *)&b->address)->sin_port)
                return 0;
        return is_any(a) || is_any(b) || memcmp(&a->address, &b->address, a->address_len) == 0;
}

int
endpoint_is_private(const struct config_listen *listen)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&listen->address;

        if (listen->address.ss_family == AF_UNIX)
                return 1;
        if (listen->address.ss_family == AF_INET)
                return ntohl(in->sin_addr.s_addr) >> 24 == 127;
        return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static const char host_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";

/* Return the length of the host at text, a name, an IPv4 address, or an IPv6 address in brackets, or 0. */
static size_t
host_len(const char *text)
{
        char address[INET6_ADDRSTRLEN];
        struct in6_addr parsed;
        size_t len;

        if (text[0] != '[')
                return strspn(text, host_chars);
        len = strcspn(text, "]");
        if (text[len] != ']' || len > sizeof(address))
                return 0;
        memcpy(address, text + 1, len - 1);
        address[len - 1] = '\0';
        return inet_pton(AF_INET6, address, &parsed) == 1 ? len + 1 : 0;
}

/* Return whether the text after the host is valid: a port, a path, both or neither. */
static int
is_rest(const char *text)
{
        if (text[0] == ':') {
                size_t len = strcspn(text + 1, "/");
                char digits[6];
                struct error error;
                uint64_t port;

                if (len == 0 || len >= sizeof(digits))
                        return 0;
                memcpy(digits, text + 1, len);
                digits[len] = '\0';
                if (number_parse(digits, 1, UINT16_MAX, &port, &error) != 0)
                        return 0;
                text += 1 + len;
        }
        if (text[0] != '\0' && text[0] != '/')
                return 0;
        for (; *text != '\0'; text++) {
                if (*text <= 0x20 || *text >= 0x7f || strchr("?#\\\"<>@", *text) != NULL)
                        return 0;
        }
        return 1;
}

int
endpoint_check_url(const char *text, struct error *error)
{
        static const char https[] = "https://", http[] = "http://", webhooks[] = "/webhooks";
        int is_https = strncmp(text, https, sizeof(https) - 1) == 0;
        int is_http = strncmp(text, http, sizeof(http) - 1) == 0;
        const char *at = text + (is_https ? sizeof(https) : sizeof(http)) - 1;
        size_t len = is_https || is_http ? host_len(at) : 0, end;
        char host[HOST_MAX + 1];
        const char *rest;

        if (strpbrk(text, "@?") != NULL)
                return error_set(
                    error, "not an https URL without user, password and query, such as "
                           "https://api.example/v1; the value is not shown because it may contain a secret");
        if (len == 0 || len > HOST_MAX || !is_rest(at + len))
                return error_set(error, "'%.100s' is not an https URL, such as https://api.example/v1", text);
        memcpy(host, at, len);
        host[len] = '\0';
        rest = at + len;
        end = strlen(rest);
        while (end > 0 && rest[end - 1] == '/')
                end--;
        if (end >= sizeof(webhooks) - 1 &&
            strncmp(rest + end - (sizeof(webhooks) - 1), webhooks, sizeof(webhooks) - 1) == 0)
                return error_set(error, "'%.100s' is the address of the webhooks; write it without /webhooks",
                                 text);
        if (is_http && !address_is_loopback_host(host))
                return error_set(error,
                                 "'%.100s' would send the API key unencrypted; use https; http is allowed "
                                 "for 127.0.0.1, [::1] and localhost only",
                                 text);
        return 0;
}
