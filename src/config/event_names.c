#include "config/event_names.h"

#include <string.h>

#include "base/uri.h"

static int
check_length(const char *text, size_t max, struct error *error)
{
        return strlen(text) <= max ? 0 : error_set(error, "'%.64s...' is longer than %zu bytes", text, max);
}

/* Check what consumers would see of a URI. A credential is not shown in the reason, either. */
static int
check_authority(const char *text, struct error *error)
{
        if (uri_has_userinfo(text))
                return error_set(error,
                                 "the URI has a user name or password before the @, which would be published "
                                 "in each event; leave it out");
        if (strstr(text, "//") != NULL && strchr(text, '@') != NULL && !uri_is_reference(text))
                return error_set(error,
                                 "not a URI, and it has a @: leave out a user name and password, which would "
                                 "be published in each event, and write other characters as %%NN; the value "
                                 "is not shown because it may contain a secret");
        return 0;
}

int
event_names_check_source(const char *text, size_t max, struct error *error)
{
        if (check_authority(text, error) != 0 || check_length(text, max, error) != 0)
                return -1;
        if (!uri_is_reference(text))
                return error_set(error,
                                 "'%.64s' is not a URI or a path, such as https://invoicing.example/eu or "
                                 "/invoicing; write other characters as %%NN",
                                 text);
        return 0;
}

int
event_names_check_type_prefix(const char *text, size_t max, struct error *error)
{
        static const char separators[] = ".-_/:";
        static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/:";
        size_t len = strlen(text);

        if (check_length(text, max, error) != 0)
                return -1;
        if (strspn(text, chars) != len)
                return error_set(
                    error,
                    "'%.64s' is not a prefix: it has letters, digits and . - _ / : only, such as "
                    "com.example.",
                    text);
        if (len == 0 || strchr(separators, text[len - 1]) == NULL)
                return error_set(error,
                                 "'%.64s' would run into the kind: %.64sinvoice.accepted; end it with a dot",
                                 text, text);
        return 0;
}

int
event_names_check_schema_base(const char *text, size_t max, struct error *error)
{
        size_t len = strlen(text);

        if (check_authority(text, error) != 0 || check_length(text, max, error) != 0)
                return -1;
        if (!uri_is_absolute(text) || strchr(text, '?') != NULL)
                return error_set(error,
                                 "'%.64s' is not an absolute URI without query and fragment, such as "
                                 "https://schemas.example/gatepost/",
                                 text);
        if (len == 0 || text[len - 1] != '/')
                return error_set(error,
                                 "'%.64s' does not end with a slash; the names of schemas are appended to it",
                                 text);
        return 0;
}
