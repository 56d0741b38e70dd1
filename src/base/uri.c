#include "base/uri.h"

#include <string.h>

#include "base/mem.h"

#define DIGITS "0123456789"
#define HEX DIGITS "abcdefABCDEF"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* unreserved, sub-delims and gen-delims (sections 2.2 and 2.3) but # and the brackets of IP-literals */
static const char chars[] = LETTERS DIGITS "-._~!$&'()*+,;=:/?@";

/* Return the end of the characters that a URI may have up to its fragment, or in it. */
static const char *
skip(const char *at)
{
        while (*at != '\0') {
                if (*at == '%' && strspn(at + 1, HEX) >= 2)
                        at += 3;
                else if (strchr(chars, *at) != NULL)
                        at++;
                else
                        break;
        }
        return at;
}

/* Return where the text continues after its scheme and colon; the text itself if it has no scheme. */
static const char *
skip_scheme(const char *text)
{
        size_t len = strspn(text, LETTERS DIGITS "+-.");

        return len > 0 && strchr(LETTERS, *text) != NULL && text[len] == ':' ? text + len + 1 : text;
}

int
uri_is_reference(const char *text)
{
        const char *end = skip(text);

        if (*end == '#')
                end = skip(end + 1);
        return *text != '\0' && *end == '\0';
}

int
uri_is_absolute(const char *text)
{
        return skip_scheme(text) != text && *skip(text) == '\0';
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
