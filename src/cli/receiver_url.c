#include "cli/receiver_url.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/dial.h"
#include "base/http_client.h"
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

/* Return the host of a URL without brackets, to be freed, or NULL. */
static char *
host_of(CURLU *parts)
{
        char *host = NULL, *bare = NULL;

        if (curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
                const char *name = host[0] == '[' ? host + 1 : host;

                bare = mem_strndup(name, strcspn(name, "]"));
        }
        curl_free(host);
        return bare;
}

char *
receiver_url_tls_host(const char *url)
{
        CURLU *parts = curl_url();
        char *scheme = NULL, *host = NULL;

        if (uri_is_reference(url) && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
            curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
            strcasecmp(scheme, "https") == 0)
                host = host_of(parts);
        curl_free(scheme);
        curl_url_cleanup(parts);
        if (host != NULL && host[0] != '\0' && host[strlen(host) - 1] == '.')
                host[strlen(host) - 1] = '\0'; /* names of certificates have no dot at the end */
        return host;
}

/* Return the addresses of the URL's host, or NULL. */
static struct addrinfo *
resolve(const char *url, int timeout_ms)
{
        CURLU *parts = curl_url();
        char *host, *port = NULL;
        struct addrinfo *found = NULL;
        struct error ignored;

        (void)curl_url_set(parts, CURLUPART_URL, url, 0);
        host = host_of(parts);
        if (host != NULL && curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
            dial_resolve(host, port, timeout_ms, &found, &ignored) != 0)
                found = NULL;
        free(host);
        curl_free(port);
        curl_url_cleanup(parts);
        return found;
}

/* Return an address as one to listen on. */
static struct config_listen
as_listen(const struct addrinfo *address)
{
        struct config_listen listen = {.address_len = address->ai_addrlen};

        memcpy(&listen.address, address->ai_addr, address->ai_addrlen);
        return listen;
}

static int
has_loopback(const struct addrinfo *found)
{
        for (const struct addrinfo *each = found; each != NULL; each = each->ai_next) {
                struct config_listen here = as_listen(each);

                if (endpoint_is_private(&here))
                        return 1;
        }
        return 0;
}

struct addrinfo *
receiver_url_addresses(const char *url, int timeout_ms)
{
        struct addrinfo *found = resolve(url, timeout_ms);

        if (found == NULL || (found->ai_next != NULL && !has_loopback(found)))
                return found;
        freeaddrinfo(found);
        return NULL;
}

/* Whether an address, at any port, is of this machine: only then it can be bound. */
static int
is_of_this_machine(struct config_listen address)
{
        int fd = socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int result;

        ((struct sockaddr_in *)&address.address)->sin_port = 0; /* where sin6_port is, too */
        result = bind(fd, (const struct sockaddr *)&address.address, address.address_len) == 0;
        (void)close(fd);
        return result;
}

int
receiver_url_is_listener(const struct config *config, const char *url, int timeout_ms)
{
        struct addrinfo *found = resolve(url, timeout_ms);
        int result = 0;

        for (const struct addrinfo *each = found; each != NULL && !result; each = each->ai_next) {
                struct config_listen address = as_listen(each);

                for (size_t i = 0; i < config->n_listen && !result; i++)
                        result =
                            endpoint_conflicts(&config->listen[i], &address) && is_of_this_machine(address);
        }
        if (found != NULL)
                freeaddrinfo(found);
        return result;
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
