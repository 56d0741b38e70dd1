#include "config/service_url.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "base/address.h"
#include "base/number.h"

#define HOST_MAX 253 /* RFC 1035, section 2.3.4 */

static const char host_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";

/* The length of the host at text: a name, an IPv4 address, or an IPv6 address in brackets. 0: there is none. */
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

/* What follows the host: a port, a path, both or neither. */
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
service_url_check(const char *text, struct error *error)
{
        static const char https[] = "https://", http[] = "http://";
        int is_https = strncmp(text, https, sizeof(https) - 1) == 0;
        int is_http = strncmp(text, http, sizeof(http) - 1) == 0;
        const char *at = text + (is_https ? sizeof(https) : sizeof(http)) - 1;
        size_t len = is_https || is_http ? host_len(at) : 0;
        char host[HOST_MAX + 1];

        if (strpbrk(text, "@?") != NULL)
                return error_set(error,
                                 "the value is not an https address, such as https://api.example/v1, without "
                                 "user, password and query; it is not shown because it may hold a secret");
        if (len == 0 || len > HOST_MAX || !is_rest(at + len))
                return error_set(error, "'%.100s' is not an https address, such as https://api.example/v1",
                                 text);
        memcpy(host, at, len);
        host[len] = '\0';
        if (is_http && !address_is_loopback_host(host))
                return error_set(
                    error,
                    "'%.100s' would show the API key to the network: give an https address; http "
                    "is for 127.0.0.1, [::1] and localhost only",
                    text);
        return 0;
}
