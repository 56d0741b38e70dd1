#include "http/target.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

/* Whether all is unreserved, sub-delims, pct-encoded (RFC 3986 section 2), or one of `more`. */
static int
consists_of(const char *text, size_t len, const char *more)
{
        for (size_t i = 0; i < len; i++) {
                char c = text[i];

                if (c == '%' && len - i > 2 && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0)
                        i += 2;
                else if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
                         (c == '\0' || (strchr("-._~!$&'()*+,;=", c) == NULL && strchr(more, c) == NULL)))
                        return 0;
        }
        return 1;
}

/* What stands between the brackets. An address of a later version than 6 there is none of. */
static int
is_ipv6(const char *text, size_t len)
{
        char address[INET6_ADDRSTRLEN];
        struct in6_addr parsed;

        if (len >= sizeof(address))
                return 0;
        memcpy(address, text, len);
        address[len] = '\0';
        return inet_pton(AF_INET6, address, &parsed) == 1;
}

/* ":" *DIGIT, or nothing. */
static int
is_port(const char *text, size_t len)
{
        unsigned port = 0;

        for (size_t i = 1; i < len; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return 0;
                port = port * 10 + (unsigned)(text[i] - '0');
                if (port > 65535)
                        return 0;
        }
        return len == 0 || *text == ':';
}

int
target_is_authority(const char *text, size_t len)
{
        const char *end;

        if (len > 0 && *text == '[') {
                end = memchr(text, ']', len);
                if (end == NULL || !is_ipv6(text + 1, (size_t)(end - text) - 1))
                        return 0;
                end++;
        } else {
                end = memchr(text, ':', len);
                if (end == NULL)
                        end = text + len;
                if (end == text || !consists_of(text, (size_t)(end - text), ""))
                        return 0;
        }
        return is_port(end, len - (size_t)(end - text));
}

/* How many bytes stand before the path or the query. */
static size_t
authority_len(const char *text, size_t len)
{
        size_t n = 0;

        while (n < len && text[n] != '/' && text[n] != '?')
                n++;
        return n;
}

/* How many bytes the scheme and what belongs to it take; 0 when it is none that is served. */
static size_t
scheme_len(const char *target, size_t len)
{
        static const char *const schemes[] = {"http://", "https://"};

        for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
                size_t n = strlen(schemes[i]);

                if (len >= n && strncasecmp(target, schemes[i], n) == 0)
                        return n;
        }
        return 0;
}

const char *
target_check(const char *method, const char *target, size_t len)
{
        size_t before = scheme_len(target, len), n;

        if (len == 1 && *target == '*')
                return strcmp(method, "OPTIONS") == 0 ? NULL : "the request target * is for OPTIONS only";
        if (before == 0 && (len == 0 || *target != '/'))
                return "the request target is malformed";
        /* evhttp takes what follows two slashes for an authority, and so may others. */
        if (before == 0 && len >= 2 && target[1] == '/')
                before = 2;
        n = before == 0 ? 0 : authority_len(target + before, len - before);
        if (!(before == 2 && n == 0) && before > 0 && !target_is_authority(target + before, n))
                return "the request target's host is malformed";
        return consists_of(target + before + n, len - before - n, ":@/?") ? NULL
                                                                          : "the request target is malformed";
}

const char *
target_path(const char *target, size_t len, size_t *path_len)
{
        const char *path = target, *end = target + len, *query;

        if (len > 0 && *target != '/') {
                const char *authority = memmem(target, len, "://", 3);

                if (authority != NULL)
                        path = authority + 3 + authority_len(authority + 3, (size_t)(end - authority) - 3);
        }
        query = memchr(path, '?', (size_t)(end - path));
        *path_len = (size_t)((query == NULL ? end : query) - path);
        return path;
}
