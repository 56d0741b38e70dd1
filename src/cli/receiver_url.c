#include "cli/receiver_url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "base/uri.h"

/* Where the host begins and the path, and the path's length: it ends at the query, a fragment or the end. */
struct url_parts {
        const char *host;
        const char *path;
        size_t len;
};

static struct url_parts
split(const char *text)
{
        size_t scheme = strcspn(text, ":/?#");
        struct url_parts parts;

        parts.host = strncmp(text + scheme, "://", 3) == 0 ? text + scheme + 3 : text;
        parts.path = parts.host + strcspn(parts.host, "/?#");
        parts.len = strcspn(parts.path, "?#");
        return parts;
}

char *
receiver_url_complete(const char *text)
{
        return mem_printf("%s%s", split(text).host == text ? "http://" : "", text);
}

/* The message does not quote the text, in which a password may be anywhere. */
int
receiver_url_check(const char *text, struct error *error)
{
        char *url = receiver_url_complete(text);
        const struct url_parts parts = split(url);
        const char *at = memrchr(parts.host, '@', (size_t)(parts.path - parts.host));
        const char *host = at == NULL ? parts.host : at + 1;
        int is_usable = (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) &&
                        host < parts.path && *host != ':' && uri_is_reference(url) && uri_has_usual_port(url);

        free(url);
        return is_usable ? 0 : error_set(error, "not a URL with http:// or https:// and a host");
}

int
receiver_url_has_path(const char *text)
{
        return split(text).len > 1;
}

char *
receiver_url_make(const char *text, const char *path)
{
        char *url = receiver_url_complete(text), *made;
        const struct url_parts parts = split(url);

        if (receiver_url_has_path(url))
                return url;
        made = mem_printf("%.*s%s%s", (int)(parts.path - url), url, path, parts.path + parts.len);
        free(url);
        return made;
}

const struct config_source *
receiver_url_source(const struct config *config, const char *url)
{
        const struct url_parts parts = split(url);
        const struct config_source *best = NULL;

        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];
                size_t len = strlen(source->path);

                if (len <= parts.len && memcmp(parts.path + parts.len - len, source->path, len) == 0 &&
                    (best == NULL || len > strlen(best->path)))
                        best = source;
        }
        return best;
}

const char *
receiver_url_certificate_remedy(int verify_error)
{
        return http_client_lacks_issuer(verify_error)
                   ? "have the server send the intermediate certificates, too (nginx: ssl_certificate with "
                     "fullchain.pem); if the authority is your own, make this machine trust it: "
                     "/usr/local/share/ca-certificates and update-ca-certificates, or SSL_CERT_FILE=FILE in "
                     "the environment of this command"
                   : NULL;
}
