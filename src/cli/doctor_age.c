#include "cli/doctor_daemon.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/status.h"
#include "config/ini.h"
#include "config/secrets.h"

#define LIST_SIZE 400

/*
 * Whether the daemon has what the files have now. It says in /status what it has loaded. Only what it does
 * not say is judged by the times of files: the files of [kafka], which it reads at its start.
 */

static const struct json_value *
first_of(const struct doctor *doctor, const char *name)
{
        const struct json_value *list = json_tree_get(doctor->status, name);

        if (list == NULL)
                list = json_tree_get(json_tree_get(doctor->status, "configuration"), name);
        return list == NULL || list->type != JSON_ARRAY ? NULL : list->first;
}

/* Return the element of a list whose member has this text, or NULL. */
static const struct json_value *
find(const struct json_value *first, const char *member, const char *wanted)
{
        for (const struct json_value *each = first; each != NULL; each = each->next) {
                const char *text = json_tree_text(each, member);

                if (text != NULL && strcmp(text, wanted) == 0)
                        return each;
        }
        return NULL;
}

static int
is_same_source(const struct config_source *source, const struct json_value *theirs)
{
        const char *path = json_tree_text(theirs, "path"), *prefix = json_tree_text(theirs, "headerPrefix");

        return path != NULL && strcmp(path, source->path) == 0 && prefix != NULL &&
               strcmp(prefix, source->header_prefix) == 0 &&
               status_number(theirs, "secrets") == (double)source->n_keys &&
               status_number(theirs, "webhookIds") == (double)source->n_webhook_ids;
}

/* Return a file with a secret of the source that the daemon has read at another time of change, or NULL. */
static const char *
find_changed_secret(const struct doctor *doctor, const struct config_source *source)
{
        const struct json_value *secrets = first_of(doctor, "secrets");

        for (size_t i = 0; i < source->n_secret_files && secrets != NULL; i++) {
                const struct config_secret_file *file = &source->secret_files[i];

                if (status_number(find(secrets, "file", file->path), "modifiedSeconds") !=
                    (double)file->written_s)
                        return file->path;
        }
        return NULL;
}

/* Return a file, the configuration or one with a secret, that the daemon has not loaded as it is, or NULL. */
static const char *
find_changed(const struct doctor *doctor)
{
        const struct json_value *configuration = json_tree_get(doctor->status, "configuration"),
                                *sources = first_of(doctor, "sources");
        const struct config *config = doctor->config;

        if (configuration == NULL)
                return NULL; /* an older daemon */
        if ((double)secrets_written_s(config->file) > status_number(configuration, "loadedSeconds"))
                return config->file;
        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];
                const char *secret = find_changed_secret(doctor, source);

                if (!is_same_source(source, find(sources, "name", source->name)))
                        return config->file;
                if (secret != NULL)
                        return secret;
        }
        return NULL;
}

/* Whether an option names a secret of a client of Kafka: a password, a key or a keystore. */
static int
is_kafka_secret(const struct ini_entry *entry)
{
        static const char *const names[] = {"ssl.key.location", "ssl.certificate.location",
                                            "ssl.keystore.location"};
        size_t len = entry->name == NULL ? 0 : strlen(entry->name);

        if (len == 0 || strcmp(entry->section, "kafka") != 0)
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (strcmp(entry->name, names[i]) == 0)
                        return 1;
        }
        return len > strlen("_file") && strcmp(entry->name + len - strlen("_file"), "_file") == 0;
}

/* Write the first file with a secret of [kafka] that is newer. Returns whether there is one. */
static int
find_newer_kafka(const struct doctor *doctor, int64_t when_s, char *path, size_t size)
{
        struct problems problems = {.file = doctor->file};
        struct ini ini;
        int is_found = 0;

        if (ini_read_file(doctor->file, &ini, &problems) == 0) {
                for (size_t i = 0; i < ini.n && !is_found; i++) {
                        is_found = is_kafka_secret(&ini.entries[i]) &&
                                   secrets_written_s(ini.entries[i].value) > when_s;
                        if (is_found)
                                (void)snprintf(path, size, "%s", ini.entries[i].value);
                }
        }
        ini_clear(&ini);
        problems_clear(&problems);
        return is_found;
}

/* Write the options that the daemon has read and that only a restart applies. Returns whether any are. */
static int
list_awaiting(const struct doctor *doctor, char *text, size_t size)
{
        text[0] = '\0';
        for (const struct json_value *each = first_of(doctor, "awaitingRestart"); each != NULL;
             each = each->next) {
                size_t len = strlen(text);

                if (each->text != NULL)
                        (void)snprintf(text + len, size - len, "%s%s", len == 0 ? "" : ", ", each->text);
        }
        return text[0] != '\0';
}

const char *
doctor_age_kafka(const struct doctor *doctor)
{
        static char text[PATH_MAX + 100];
        int64_t start_s = (int64_t)status_number(doctor->status, "startTimeSeconds");
        const char *changed = find_changed(doctor);
        char path[PATH_MAX], options[LIST_SIZE];

        if (list_awaiting(doctor, options, sizeof(options)) && strstr(options, "[kafka]") != NULL)
                return "since its start it has only read the present one";
        if (start_s != 0 && find_newer_kafka(doctor, start_s, path, sizeof(path)))
                (void)snprintf(text, sizeof(text), "%s is newer than its start", path);
        else if (changed != NULL && strcmp(changed, doctor->config->file) == 0)
                (void)snprintf(text, sizeof(text), "it has not loaded %s as it is now", changed);
        else
                return NULL;
        return text;
}

void
doctor_age_check(struct doctor *doctor)
{
        const char *version = json_tree_text(json_tree_get(doctor->status, "versions"), "gatepostd");
        int64_t start_s = (int64_t)status_number(doctor->status, "startTimeSeconds");
        const char *changed = find_changed(doctor);
        char path[PATH_MAX], options[LIST_SIZE];

        doctor_begin(doctor, "daemon", "configuration");
        doctor->is_daemon_outdated = changed != NULL;
        if (find_newer_kafka(doctor, start_s, path, sizeof(path)))
                doctor_warn(doctor,
                            "%s is newer than the start of gatepostd, and changes in [kafka] need a restart: "
                            "systemctl restart gatepostd",
                            path);
        else if (changed != NULL)
                doctor_warn(doctor, "gatepostd has not loaded %s as it is now: systemctl reload gatepostd",
                            changed);
        else if (list_awaiting(doctor, options, sizeof(options)))
                doctor_warn(doctor,
                            "gatepostd has read options that only a restart applies, %s: systemctl restart "
                            "gatepostd",
                            options);
        else
                doctor_pass(doctor, "gatepostd has loaded the newest files");
        if (version == NULL || strcmp(version, PACKAGE_VERSION) == 0)
                return;
        doctor_begin(doctor, "daemon", "version");
        doctor_warn(doctor, "gatepostd is version %s, this command %s: systemctl restart gatepostd", version,
                    PACKAGE_VERSION);
}
