#include "cli/receiver_url.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/mem.h"
#include "config/endpoint.h"

int
receiver_url_own(const struct config_listen *listen, const char *ca_file, const char *path,
                 struct receiver_url *own)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&listen->address;
        int family = listen->address.ss_family;
        const char *scheme = ca_file == NULL ? "http" : "https";

        *own = (struct receiver_url){.ca_file = ca_file};
        if (family == AF_UNIX) {
                own->socket_path = endpoint_path(listen);
                own->url = mem_printf("%s://localhost%s", scheme, path);
                return 0;
        }
        if (in->sin_port == 0)
                return -1;
        if (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
                own->url = mem_printf("%s://[::1]:%d%s", scheme, ntohs(in6->sin6_port), path);
        else if (family == AF_INET && in->sin_addr.s_addr == INADDR_ANY)
                own->url = mem_printf("%s://127.0.0.1:%d%s", scheme, ntohs(in->sin_port), path);
        else
                own->url = mem_printf("%s://%s%s", scheme, listen->text, path);
        return 0;
}

/* Parse a URL. Returns NULL if it is none of HTTP. */
static CURLU *
parse(const char *text)
{
        CURLU *url = curl_url();
        char *scheme = NULL;
        int is_http =
            curl_url_set(url, CURLUPART_URL, text, CURLU_GUESS_SCHEME | CURLU_PATH_AS_IS) == CURLUE_OK &&
            curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
            (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);

        curl_free(scheme);
        if (is_http)
                return url;
        curl_url_cleanup(url);
        return NULL;
}

/* Return a part of a URL, "" if it has none. The caller frees it. */
static char *
part_of(CURLU *url, CURLUPart part)
{
        char *text = NULL, *copy;

        (void)curl_url_get(url, part, &text, 0);
        copy = mem_strdup(text == NULL ? "" : text);
        curl_free(text);
        return copy;
}

/* The message does not quote the text, in which a password may be anywhere. */
int
receiver_url_check(const char *text, struct error *error)
{
        CURLU *url = parse(text);

        if (url == NULL)
                return error_set(error, "not a URL with http:// or https:// and a host");
        curl_url_cleanup(url);
        return 0;
}

static char *
path_of(const char *text)
{
        CURLU *url = parse(text);
        char *path = url == NULL ? mem_strdup("") : part_of(url, CURLUPART_PATH);

        curl_url_cleanup(url);
        return path;
}

int
receiver_url_has_path(const char *text)
{
        char *path = path_of(text);
        int has_path = strlen(path) > 1;

        free(path);
        return has_path;
}

/* Return a checked URL with http:// unless it has a scheme, and with the path unless it has one. */
static char *
make(const char *text, const char *path)
{
        CURLU *url = parse(text);
        char *made;

        if (!receiver_url_has_path(text))
                (void)curl_url_set(url, CURLUPART_PATH, path, 0);
        (void)curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
        made = part_of(url, CURLUPART_URL);
        curl_url_cleanup(url);
        return made;
}

const struct config_source *
receiver_url_source(const struct config *config, const char *url)
{
        char *path = path_of(url);
        size_t path_len = strlen(path), best_len = 0;
        const struct config_source *best = NULL;

        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];
                size_t len = strlen(source->path);

                if (len > path_len || len <= best_len || strcmp(path + path_len - len, source->path) != 0)
                        continue;
                best = source;
                best_len = len;
        }
        free(path);
        return best;
}

int
receiver_url_choose(const struct config *config, const char *to, const char *path, struct receiver_url *url,
                    struct error *error)
{
        *url = (struct receiver_url){0};
        if (to != NULL) {
                url->url = make(to, path);
                return 0;
        }
        if (!(config->roles & CONFIG_RECEIVER))
                return error_set(error, "there is no receiver here; give --to URL");
        if (config->requires_proxy || config->tls_client_ca_file != NULL)
                return error_set(error, "the receiver takes only connections of proxies; give --to URL");
        if (receiver_url_own(&config->listen[0], config->tls_certificate_file, path, url) != 0)
                return error_set(error, "only gatepostd knows its port; give --to URL");
        return 0;
}
