#include "cli/doctor_daemon.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "cli/status.h"
#include "config/ini.h"
#include "config/secrets.h"

/* Whether the daemon has what the files have now. It reads those of [kafka] at its start only. */

#define LOADED "\ngatepost_config_last_reload_success_timestamp_seconds "

/* Return when the daemon loaded its configuration, in seconds since the epoch; 0: unknown. */
static int64_t
loaded_s(const struct doctor *doctor)
{
        struct http_client_answer answer;
        struct error error;
        const char *line;
        int64_t when_s = 0;

        if (doctor_daemon_get(doctor, "/metrics", &answer, &error) != 0)
                return 0;
        line = strstr(answer.body, LOADED);
        if (line != NULL)
                when_s = strtoll(line + strlen(LOADED), NULL, 10);
        free(answer.body);
        return when_s;
}

/* Return a file, the configuration or one with a secret, that is newer than what the daemon has, or NULL. */
static const char *
find_newer(const struct config *config, int64_t when_s)
{
        struct stat st;

        if (when_s == 0)
                return NULL;
        if (stat(config->file, &st) == 0 && st.st_mtime > when_s)
                return config->file;
        for (size_t s = 0; s < config->n_sources; s++) {
                for (size_t i = 0; i < config->sources[s].n_secret_files; i++) {
                        if (config->sources[s].secret_files[i].written_s > when_s)
                                return config->sources[s].secret_files[i].path;
                }
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

const char *
doctor_age_newer_than_start(const struct doctor *doctor)
{
        static char path[PATH_MAX];
        int64_t start_s = (int64_t)status_number(doctor->status, "startTimeSeconds");

        if (start_s == 0)
                return NULL;
        if (find_newer_kafka(doctor, start_s, path, sizeof(path)))
                return path;
        return doctor_kafka_trouble(doctor) != NULL && secrets_written_s(doctor->file) > start_s
                   ? doctor->file
                   : NULL;
}

void
doctor_age_check(struct doctor *doctor)
{
        const char *version = json_tree_text(json_tree_get(doctor->status, "versions"), "gatepostd");
        const char *newer = find_newer(doctor->config, loaded_s(doctor));
        const char *newer_than_start = doctor_age_newer_than_start(doctor);

        doctor_begin(doctor, "daemon", "configuration");
        doctor->is_daemon_outdated = newer != NULL;
        if (newer_than_start != NULL)
                doctor_warn(doctor,
                            "%s is newer than the start of gatepostd, and changes in [kafka] need a restart: "
                            "systemctl restart gatepostd",
                            newer_than_start);
        else if (newer != NULL)
                doctor_warn(doctor, "%s is newer than what gatepostd has loaded: systemctl reload gatepostd",
                            newer);
        else
                doctor_pass(doctor, "gatepostd has loaded the newest files");
        if (version == NULL || strcmp(version, PACKAGE_VERSION) == 0)
                return;
        doctor_begin(doctor, "daemon", "version");
        doctor_warn(doctor, "gatepostd is version %s, this command %s: systemctl restart gatepostd", version,
                    PACKAGE_VERSION);
}
