#include "config/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/address.h"
#include "base/mem.h"
#include "base/number.h"

static int
parse_unix(const char *path, struct config_listen *listen, struct error *error)
{
        struct sockaddr_un *address = (struct sockaddr_un *)&listen->address;
        size_t len = strlen(path);

        if (path[0] != '/' || path[len - 1] == '/' || len >= sizeof(address->sun_path))
                return error_set(error,
                                 "unix:%.64s: the path of a socket is absolute and has at most %zu bytes",
                                 path, sizeof(address->sun_path) - 1);
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
                result = error_set(error, "'%.100s' does not end with a port, 0 to 65535", text);
        } else {
                host = mem_strndup(text, (size_t)(colon - text));
                result = parse_address(host, (in_port_t)port, listen) == 0
                             ? 0
                             : error_set(error, "'%.100s' does not begin with a numeric address", text);
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
                return strcmp(endpoint_path(a), endpoint_path(b)) == 0;
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

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Return the length of the host at text, a name or an address, of IPv6 in brackets, or 0. */
static size_t
host_len(const char *text)
{
        size_t len;

        if (text[0] != '[')
                return strspn(text, LETTERS ".-");
        len = strspn(text + 1, "0123456789abcdefABCDEF:.");
        return len > 0 && text[1 + len] == ']' ? len + 2 : 0;
}

/* Return whether the text after the host is valid: a port, a path, both or neither. */
static int
is_rest(const char *text)
{
        if (text[0] == ':') {
                size_t digits = strspn(text + 1, "0123456789");
                unsigned long port = strtoul(text + 1, NULL, 10);

                if (digits == 0 || port == 0 || port > UINT16_MAX)
                        return 0;
                text += 1 + digits;
        }
        return (*text == '\0' || *text == '/') && text[strspn(text, LETTERS "/-._~!$&'()*+,;=:%")] == '\0';
}

int
endpoint_check_url(const char *text, struct error *error)
{
        int is_https = strncmp(text, "https://", 8) == 0, is_http = strncmp(text, "http://", 7) == 0,
            is_local;
        const char *at = text + (is_https ? 8 : 7);
        size_t len = is_https || is_http ? host_len(at) : 0;
        char *host;

        if (strpbrk(text, "@?") != NULL)
                return error_set(error,
                                 "not an https URL without user, password and query (not shown, since it "
                                 "may contain a secret)");
        if (len == 0 || !is_rest(at + len))
                return error_set(error, "'%.100s' is not an https URL", text);
        host = mem_strndup(at, len);
        is_local = address_is_loopback_host(host);
        free(host);
        return is_https || is_local
                   ? 0
                   : error_set(error, "'%.100s' would send the API key unencrypted, not by https", text);
}
