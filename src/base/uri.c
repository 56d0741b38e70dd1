#include "base/uri.h"

#include <string.h>

#include "base/mem.h"

#define DIGITS "0123456789"
#define HEX DIGITS "abcdefABCDEF"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* unreserved and sub-delims (sections 2.2 and 2.3), which may be in every part but the scheme */
static const char common[] = LETTERS DIGITS "-._~!$&'()*+,;=";

/* Return the end of the characters that a part may have: the common ones, `more`, percent-encoded bytes. */
static const char *
skip(const char *at, const char *more)
{
        for (;;) {
                if (*at == '%' && at[1] != '\0' && strchr(HEX, at[1]) != NULL && at[2] != '\0' &&
                    strchr(HEX, at[2]) != NULL)
                        at += 3;
                else if (*at != '\0' && (strchr(common, *at) != NULL || strchr(more, *at) != NULL))
                        at++;
                else
                        return at;
        }
}

/* Return where the text continues after its scheme and colon; the text itself if it has no scheme. */
static const char *
skip_scheme(const char *text)
{
        size_t len = strspn(text, LETTERS DIGITS "+-.");

        return len > 0 && strchr(LETTERS, *text) != NULL && text[len] == ':' ? text + len + 1 : text;
}

/* Return the end of a host, a name or an address; NULL if a bracket of an IP-literal is not closed. */
static const char *
skip_host(const char *at)
{
        const char *end;

        if (*at != '[')
                return skip(at, "");
        end = skip(at + 1, ":");
        return end > at + 1 && *end == ']' ? end + 1 : NULL;
}

/* Return the end of an authority, [userinfo@]host[:port], or NULL if it is malformed. */
static const char *
skip_authority(const char *at)
{
        const char *userinfo = skip(at, ":");
        const char *end = skip_host(*userinfo == '@' ? userinfo + 1 : at);

        if (end != NULL && *end == ':')
                end += 1 + strspn(end + 1, DIGITS);
        return end == NULL || *end == '\0' || strchr("/?#", *end) != NULL ? end : NULL;
}

/* Return the end of everything but the fragment, or NULL if a part is malformed. */
static const char *
skip_to_fragment(const char *text)
{
        const char *at = skip_scheme(text);

        if (strncmp(at, "//", 2) == 0) {
                at = skip_authority(at + 2);
        } else if (at == text) {
                at = skip(at, "@"); /* path-noscheme: a colon in the first segment would end a scheme */
                if (*at == ':')
                        return NULL;
        }
        if (at == NULL)
                return NULL;
        at = skip(at, "/:@");
        return *at == '?' ? skip(at + 1, "/:@?") : at;
}

int
uri_is_reference(const char *text)
{
        const char *end = skip_to_fragment(text);

        if (*text == '\0' || end == NULL)
                return 0;
        return *end == '\0' || (*end == '#' && *skip(end + 1, "/:@?") == '\0');
}

int
uri_is_absolute(const char *text)
{
        const char *end = skip_to_fragment(text);

        return skip_scheme(text) != text && end != NULL && *end == '\0';
}

/* Return the authority and its length, or NULL if there is none. */
static const char *
find_authority(const char *text, size_t *len)
{
        const char *at = skip_scheme(text);

        if (strncmp(at, "//", 2) != 0)
                return NULL;
        *len = strcspn(at + 2, "/?#");
        return at + 2;
}

int
uri_has_userinfo(const char *text)
{
        size_t len;
        const char *authority = find_authority(text, &len);

        return authority != NULL && memchr(authority, '@', len) != NULL;
}

char *
uri_hide_secrets(const char *text)
{
        size_t len;
        const char *authority = find_authority(text, &len),
                   *at = authority == NULL ? NULL : memrchr(authority, '@', len),
                   *rest = at == NULL ? text : at;
        int n_rest = (int)strcspn(rest, "?");

        return mem_printf("%.*s%s%.*s%s", at == NULL ? 0 : (int)(authority - text), text,
                          at == NULL ? "" : "***", n_rest, rest, rest[n_rest] == '?' ? "?..." : "");
}
