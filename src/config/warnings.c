#include "config/load.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "config/endpoint.h"
#include "config/secrets.h"

/* What works, but probably not as intended. */

/* Return the line of the n-th listen of [receiver]. */
static size_t
listen_line(const struct ini *ini, size_t n)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];

                if (entry->name != NULL && strcmp(entry->section, "receiver") == 0 &&
                    strcmp(entry->name, "listen") == 0 && n-- == 0)
                        return entry->line;
        }
        return 0;
}

static void
warn_about_listeners(const struct config *config, const struct ini *ini, struct problems *problems)
{
        int trusts_proxies = config->n_trusted_proxies > 0 || config->trusts_unix_sockets;

        for (size_t i = 0; i < config->n_listen && config->certificate == NULL && !trusts_proxies; i++) {
                if (endpoint_is_private(&config->listen[i]))
                        continue;
                problems_warn(
                    problems, listen_line(ini, i),
                    "%.100s can be reached from other machines without TLS: bodies can be read on the way; "
                    "set tls_certificate_file and tls_key_file, or listen on 127.0.0.1 behind a proxy",
                    config->listen[i].text);
                break;
        }
}

static void
warn_about_admin(const struct config *config, const struct ini *ini, struct problems *problems)
{
        if (config->admin != NULL && !endpoint_is_private(config->admin))
                problems_warn(
                    problems, ini_line(ini, "admin", "", "listen"),
                    "%.100s: the admin endpoint has neither TLS nor authentication; restrict access to it by "
                    "a firewall",
                    config->admin->text);
}

/* Whether a secret is a placeholder, of the sample or of anybody's template. */
static int
is_placeholder(const char *secret)
{
        static const char *const words[] = {"at least sixteen bytes",
                                            "changeme",
                                            "change-me",
                                            "change_me",
                                            "replace-me",
                                            "replace_me",
                                            "replaceme",
                                            "your-secret",
                                            "your_secret",
                                            "placeholder",
                                            "<secret>"};

        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
                if (strcasestr(secret, words[i]) != NULL)
                        return 1;
        }
        return secret[strspn(secret, (char[]){secret[0], '\0'})] == '\0'; /* one letter, again and again */
}

static void
warn_about_secret(const char *secret, const char *where, size_t line, struct problems *problems)
{
        size_t len = strlen(secret);

        if (is_placeholder(secret))
                problems_warn(problems, line,
                              "%s is a placeholder, which anybody can guess; register a new one: gatepost "
                              "secret new FILE",
                              where);
        if (len > 0 && (isspace((unsigned char)secret[0]) || isspace((unsigned char)secret[len - 1])))
                problems_warn(problems, line, "%s begins or ends with a blank, which belongs to the secret",
                              where);
}

static void
warn_about_secrets(const struct ini *ini, struct problems *problems)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];
                struct error error;
                size_t len;
                char *secret;

                if (entry->name == NULL || strcmp(entry->section, "source") != 0)
                        continue;
                if (strcmp(entry->name, "secret") == 0)
                        warn_about_secret(entry->value, "the secret", entry->line, problems);
                if (strcmp(entry->name, "secret_file") != 0)
                        continue;
                secret = secrets_read_signing(entry->value, &len, &error);
                if (secret != NULL)
                        warn_about_secret(secret, "the secret in the file", entry->line, problems);
                secrets_free(secret, secret == NULL ? 0 : len);
        }
}

/* A signature by a secret of a source, to find equal secrets. */
struct proof {
        uint8_t signature[SIGNATURE_SIZE];
        size_t source;
};

static int
compare_proofs(const void *a, const void *b)
{
        const struct proof *one = a, *other = b;
        int order = memcmp(one->signature, other->signature, SIGNATURE_SIZE);

        return order != 0 ? order : (one->source > other->source) - (one->source < other->source);
}

static void
warn_about_shared_secrets(const struct config *config, const struct ini *ini, struct problems *problems)
{
        size_t n_keys = 0, n = 0;
        struct proof *proofs;
        uint8_t *is_reported = mem_alloc(config->n_sources + 1); /* for each source */

        for (size_t i = 0; i < config->n_sources; i++)
                n_keys += config->sources[i].n_keys;
        proofs = mem_alloc((n_keys + 1) * sizeof(*proofs));
        for (size_t i = 0; i < config->n_sources; i++) {
                for (size_t k = 0; k < config->sources[i].n_keys; k++) {
                        proofs[n].source = i;
                        n += signature_compute(config->sources[i].keys[k], "0", "", 0, proofs[n].signature) ==
                             0;
                }
        }
        qsort(proofs, n, sizeof(*proofs), compare_proofs);
        for (size_t i = 1; i < n; i++) {
                size_t second = proofs[i].source;
                const char *one = config->sources[proofs[i - 1].source].name;
                const char *other = config->sources[second].name;

                if (one != other && !is_reported[second] &&
                    memcmp(proofs[i - 1].signature, proofs[i].signature, SIGNATURE_SIZE) == 0) {
                        is_reported[second] = 1;
                        problems_warn(
                            problems, ini_line(ini, "source", other, NULL),
                            "[source %s] and [source %s] have a secret in common: who sees a delivery to one "
                            "can send it to the other; register a secret of its own for each",
                            one, other);
                }
        }
        free(is_reported);
        free(proofs);
}

static void
warn_about_prefixes(const struct config *config, const struct ini *ini, struct problems *problems)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                const struct config_source *source = &config->sources[i];

                if (strncmp(source->header_prefix, "x-", 2) != 0)
                        problems_warn(problems, ini_line(ini, "source", source->name, "header_prefix"),
                                      "the headers of [source %s] are %s-signature and so on; the service's "
                                      "begin with x-",
                                      source->name, source->header_prefix);
        }
}

void
warn_about(const struct config *config, const struct ini *ini, struct problems *problems)
{
        if (config->roles & CONFIG_RECEIVER)
                warn_about_listeners(config, ini, problems);
        warn_about_admin(config, ini, problems);
        warn_about_secrets(ini, problems);
        warn_about_shared_secrets(config, ini, problems);
        warn_about_prefixes(config, ini, problems);
}
