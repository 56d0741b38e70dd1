#ifndef BASE_URI_H
#define BASE_URI_H

/*
 * The characters of URIs (RFC 3986): ASCII only, `%` only before two hexadecimal digits, and no brackets,
 * which only an IPv6 address has. The order of a URI's parts is not checked.
 */

/* Return whether the text can be a URI, or a relative reference such as /eu (section 4.1), not empty. */
int uri_is_reference(const char *text);

/* Return whether it can be an absolute-URI (section 4.3): it begins with a scheme, and has no fragment. */
int uri_is_absolute(const char *text);

/*
 * Return whether the authority of the text, which need not be well formed otherwise, has user information,
 * such as user:password@ (section 3.2.1).
 */
int uri_has_userinfo(const char *text);

/*
 * Return the text with *** instead of user information and ?... instead of a query, since either may have a
 * password or a token. The caller frees it.
 */
char *uri_hide_secrets(const char *text);

#endif
