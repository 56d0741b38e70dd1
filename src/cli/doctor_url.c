#include "cli/doctor.h"

#include <string.h>

#include "base/mem.h"

/*
 * Which source a URL leads to. Proxies may put something before the path of a source, so a URL leads to the
 * source with the longest path at the end of its own.
 */

/* The parts of a URL: where its path begins, and where it ends, at the query, a fragment or the end. */
struct url_parts {
        const char *path;
        size_t len;
};

static struct url_parts
split(const char *url)
{
        const char *host = strstr(url, "://");
        struct url_parts parts;

        host = host == NULL ? url : host + 3;
        parts.path = host + strcspn(host, "/?#");
        parts.len = strcspn(parts.path, "?#");
        return parts;
}

const struct config_source *
doctor_url_source(const struct config *config, const char *url)
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

char *
doctor_url_complete(const char *text)
{
        return mem_printf("%s%s", strstr(text, "://") == NULL ? "http://" : "", text);
}

int
doctor_url_has_path(const char *url)
{
        return split(url).len > 1;
}

char *
doctor_url_make(const char *url, const struct config_source *source)
{
        const struct url_parts parts = split(url);

        if (doctor_url_has_path(url))
                return mem_strdup(url);
        return mem_printf("%.*s%s%s", (int)(parts.path - url), url, source->path, parts.path + parts.len);
}
