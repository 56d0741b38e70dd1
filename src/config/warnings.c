#include "config/load.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "base/unit.h"
#include "config/endpoint.h"
#include "config/hidden_paths.h"
#include "config/kafka_properties.h"
#include "config/secrets.h"

/* What works, but probably not as intended. */

#define SHORT_TOLERANCE_MS 30000
#define LONG_TOLERANCE_MS (24 * 3600000)
#define LONG_UNGUARDED_MS 900000
#define SHORT_WINDOW_MS 3600000
#define SPOOL_WINDOW_MS (2 * 3600000) /* of use with a spool */

static void
warn_about_admin(const struct config *config, struct problems *problems)
{
        if (config->admin != NULL && !endpoint_is_private(config->admin))
                problems_warn(
                    problems, config->admin->line,
                    "%.100s: the admin endpoint has neither TLS nor authentication; restrict access to it by "
                    "a firewall",
                    config->admin->text);
}

static const char *
doubt_in_file(const struct config *config, const struct ini_entry *entry)
{
        const struct config_source *source =
            config_find_source(config, entry->argument, strlen(entry->argument));

        for (size_t i = 0; source != NULL && i < source->n_secret_files; i++) {
                if (strcmp(source->secret_files[i].path, entry->value) == 0)
                        return source->secret_files[i].doubt;
        }
        return NULL;
}

static void
warn_about_secrets(const struct config *config, const struct ini *ini, struct problems *problems)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];
                const char *doubt = NULL, *where = "";

                if (entry->name == NULL || strcmp(entry->section, "source") != 0)
                        continue;
                if (strcmp(entry->name, "secret") == 0) {
                        doubt = secrets_doubt(entry->value);
                } else if (strcmp(entry->name, "secret_file") == 0) {
                        doubt = doubt_in_file(config, entry);
                        where = "in the file ";
                }
                if (doubt != NULL)
                        problems_warn(problems, entry->line, "the secret %s%s", where, doubt);
        }
}

static void
warn_about_api_key(const struct config *config, const struct ini *ini, struct problems *problems)
{
        size_t line = ini_line(ini, "service", "", "api_key");

        if (config->service_api_key_doubt != NULL && line != 0)
                problems_warn(problems, line, "the API key %s", config->service_api_key_doubt);
        else if (config->service_api_key_doubt != NULL)
                problems_warn(problems, ini_line(ini, "service", "", "api_key_file"),
                              "the API key in the file %s", config->service_api_key_doubt);
}

/* Return whether a directory is above a file that was looked at before. */
static int
was_seen(const struct config *config, size_t n, const char *directory)
{
        for (size_t i = 0; i < n; i++) {
                if (unit_is_below(config->files[i].path, directory))
                        return 1;
        }
        return 0;
}

/* Such as the volume of a ConfigMap in Kubernetes, whose mode is 0777. */
static int
is_read_only(const char *path)
{
        struct statvfs system;

        return statvfs(path, &system) == 0 && (system.f_flag & ST_RDONLY);
}

static void
warn_about_writers_of(const char *path, const struct stat *st, size_t line, struct problems *problems)
{
        /* In a directory with the sticky bit nobody replaces the files of others. */
        int is_protected = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);

        if ((st->st_mode & S_IWOTH) && !is_protected && !is_read_only(path))
                problems_warn(
                    problems, line,
                    "others can write %.200s (mode %04o), and so decide what is accepted; correct it: "
                    "chmod o-w %.200s",
                    path, (unsigned)(st->st_mode & 07777), path);
}

/* Whoever can write one of the files, or replace it, can have forged deliveries accepted. */
static void
warn_about_writers(const struct config *config, struct problems *problems)
{
        for (size_t i = 0; i < config->n_files; i++) {
                const struct config_file *file = &config->files[i];

                warn_about_writers_of(file->path, &file->st, file->line, problems);
                for (const char *end = strchr(file->path + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
                        char *directory = mem_strndup(file->path, (size_t)(end - file->path));
                        struct stat st;

                        if (!was_seen(config, i, directory) && stat(directory, &st) == 0)
                                warn_about_writers_of(directory, &st, file->line, problems);
                        free(directory);
                }
        }
}

/* Brokers say of a wrong password only that it is wrong. */
static void
warn_about_passwords(const struct config *config, struct problems *problems)
{
        for (size_t i = 0; i < config->n_kafka; i++) {
                const struct config_property *property = &config->kafka[i];
                const char *doubt = kafka_property_is_password(property->name)
                                        ? secrets_doubt_password(property->value)
                                        : NULL;

                if (doubt != NULL)
                        problems_warn(problems, property->line, "the value of %s %s", property->name, doubt);
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

/*
 * Who captured a delivery can send it again under another delivery-id as long as its timestamp is fresh; only
 * the replay guard, which has no room for many, prevents that.
 */
static void
warn_about_tolerances(const struct config *config, const struct ini *ini, struct problems *problems)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                const struct config_source *source = &config->sources[i];
                size_t line = ini_line(ini, "source", source->name, "tolerance");
                char tolerance[NUMBER_TEXT_SIZE];

                (void)number_format_duration(source->tolerance_ms, tolerance);
                if (source->tolerance_ms < SHORT_TOLERANCE_MS)
                        problems_warn(
                            problems, line,
                            "tolerance = %s refuses genuine deliveries when the clocks differ by that "
                            "much or a delivery is slow on its way",
                            tolerance);
                else if (source->tolerance_ms > LONG_TOLERANCE_MS)
                        problems_warn(problems, line,
                                      "who captured a delivery can send it again as another event for %s; "
                                      "the replay guard knows only the last 262144 deliveries",
                                      tolerance);
                else if (!source->replay_guard && source->tolerance_ms > LONG_UNGUARDED_MS)
                        problems_warn(problems, line,
                                      "who captured a delivery can send it again as another event for %s, "
                                      "because replay_guard is off",
                                      tolerance);
        }
}

/* The service repeats a delivery whose answer was lost, and may sign it anew; its intervals are not known. */
static void
warn_about_window(const struct config *config, const struct ini *ini, struct problems *problems)
{
        char window[NUMBER_TEXT_SIZE];

        if (config->dedup_window_ms < SHORT_WINDOW_MS)
                problems_warn(problems, ini_line(ini, "router", "", "dedup_window"),
                              "an attempt that is signed anew and comes %s after the first one is published "
                              "again; see RETRIES in gatepost.conf(5)",
                              number_format_duration(config->dedup_window_ms, window));
}

/*
 * Half of dedup_window is for the time in a spool, the other half for the service's attempts
 * (model/judge.c).
 */
static void
warn_about_spool(const struct config *config, struct problems *problems)
{
        char window[NUMBER_TEXT_SIZE], half[NUMBER_TEXT_SIZE];

        if (config->spool == NULL && config->spool_max_line != 0)
                problems_warn(
                    problems, config->spool_max_line,
                    "spool_max has no effect without spool; set spool = /var/lib/gatepost/spool, or "
                    "remove it");
        if (config->spool == NULL)
                return;
        if (config->spool_max < config->max_body)
                problems_warn(problems,
                              config->spool_max_line != 0 ? config->spool_max_line : config->spool_line,
                              "spool_max is less than max_body: the largest deliveries can never be spooled; "
                              "increase spool_max, or decrease max_body");
        if (!(config->roles & CONFIG_RECEIVER))
                problems_warn(
                    problems, config->spool_line,
                    "this process is no receiver: it stores nothing in the spool and does not drain "
                    "it; remove spool, or add receiver to roles");
        else if (config->dedup_window_ms < SPOOL_WINDOW_MS)
                problems_warn(problems, config->spool_line,
                              "dedup_window = %s: deliveries that are spooled for more than %s go to "
                              "quarantine; make it at least twice the longest outage of Kafka",
                              number_format_duration(config->dedup_window_ms, window),
                              number_format_duration(config->dedup_window_ms / 2, half));
}

static void
warn_about_socket(const struct config *config, const struct config_listen *listen, const char *name,
                  struct problems *problems)
{
        if (endpoint_may_be_hidden(listen, config))
                problems_warn(problems, listen->line,
                              "listen: %s: the systemd units have a /tmp and a /var/tmp of their own, where "
                              "other programs do not find the socket; use unix:/run/gatepost/%s.sock",
                              listen->text, name);
}

/* The units have PrivateTmp=yes. A spool there is an error. */
static void
warn_about_temporary(const struct config *config, struct problems *problems)
{
        if (config->state != NULL && config_may_be_private(config, config->state))
                problems_warn(
                    problems, config->state_line,
                    "state: %.200s: the systemd units have a /tmp and a /var/tmp of their own, which "
                    "are deleted when gatepostd stops; use " STATE_DIRECTORY "/state",
                    config->state);
        for (size_t i = 0; i < config->n_listen && (config->roles & CONFIG_RECEIVER); i++)
                warn_about_socket(config, &config->listen[i], "receiver", problems);
        if (config->admin != NULL)
                warn_about_socket(config, config->admin, "admin", problems);
}

static void
warn_about_pointers(const struct ini *ini, struct problems *problems)
{
        static const char *const names[] = {"kind", "key", "subject"};
        struct pointer pointer;
        struct error error;

        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];
                const char *doubt = NULL;

                for (size_t n = 0; n < ARRAY_LEN(names); n++) {
                        if (entry->name == NULL || strcmp(entry->section, "source") != 0 ||
                            strcmp(entry->name, names[n]) != 0 ||
                            pointer_parse(entry->value, &pointer, &error) != 0)
                                continue;
                        doubt = pointer_doubt(&pointer);
                        pointer_clear(&pointer);
                }
                if (doubt != NULL)
                        problems_warn(problems, entry->line, "%s: '%.64s': %s", entry->name, entry->value,
                                      doubt);
        }
}

/* The units of the package for a receiver and a router apart take files of these names. */
static void
warn_about_role(const struct config *config, const struct ini *ini, struct problems *problems)
{
        const char *role = unit_role(config->file);
        unsigned bit = role == NULL                    ? config->roles
                       : strcmp(role, "receiver") == 0 ? CONFIG_RECEIVER
                                                       : CONFIG_ROUTER;

        if (config->roles != bit)
                problems_warn(
                    problems, ini_line(ini, "gatepost", "", "roles"),
                    "the name of this file is that of a %s, but its `roles` is %s; set roles = %s in "
                    "[gatepost]",
                    role,
                    config->roles == CONFIG_RECEIVER ? "receiver"
                    : config->roles == CONFIG_ROUTER ? "router"
                    : ini_line(ini, "gatepost", "", "roles") == 0
                        ? "not set, which makes it a receiver and a router"
                        : "receiver, router",
                    role);
}

void
warn_about(const struct config *config, const struct ini *ini, struct problems *problems)
{
        if (config->roles & CONFIG_RECEIVER)
                warn_about_listeners(config, ini, problems);
        if (config->roles & CONFIG_ROUTER)
                warn_about_window(config, ini, problems);
        warn_about_role(config, ini, problems);
        warn_about_spool(config, problems);
        warn_about_temporary(config, problems);
        hidden_paths_warn(config, ini, problems);
        warn_about_admin(config, problems);
        warn_about_tolerances(config, ini, problems);
        warn_about_secrets(config, ini, problems);
        warn_about_api_key(config, ini, problems);
        warn_about_passwords(config, problems);
        warn_about_writers(config, problems);
        warn_about_shared_secrets(config, ini, problems);
        warn_about_prefixes(config, ini, problems);
        warn_about_pointers(ini, problems);
}
