#include "cli/receiver_url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/dial.h"
#include "base/mem.h"
#include "base/uri.h"
#include "config/endpoint.h"

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
        int is_usable = (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) &&
                        parts.path > parts.host && uri_is_reference(url) && uri_has_usual_port(url);

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

static int
has_loopback(const struct addrinfo *found)
{
        for (const struct addrinfo *each = found; each != NULL; each = each->ai_next) {
                struct config_listen here = {0};

                memcpy(&here.address, each->ai_addr, each->ai_addrlen);
                if (endpoint_is_private(&here))
                        return 1;
        }
        return 0;
}

struct addrinfo *
receiver_url_addresses(const char *url, int timeout_ms)
{
        CURLU *parts = curl_url();
        char *host = NULL, *port = NULL;
        struct addrinfo *found = NULL;
        struct error ignored;

        if (curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK && host[0] != '[' &&
            dial_resolve(host, port, timeout_ms, &found, &ignored) == 0 &&
            (found->ai_next == NULL || has_loopback(found))) {
                freeaddrinfo(found);
                found = NULL;
        }
        curl_free(host);
        curl_free(port);
        curl_url_cleanup(parts);
        return found;
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
