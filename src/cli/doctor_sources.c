#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <string.h>

#include "cli/status.h"

/* What a reload of the file would do to the sources that the daemon has loaded, by its report. */

/* Return what the daemon has of the source that it calls so, or NULL. */
static const struct json_value *
find_named(const struct doctor *doctor, const char *name)
{
        const struct json_value *each = doctor_age_first(doctor, "sources");

        for (; each != NULL; each = each->next) {
                const char *its = json_tree_text(each, "name");

                if (its != NULL && strcmp(its, name) == 0)
                        break;
        }
        return each;
}

/* Whether a source of the file has this path, or this name. */
static int
has_source(const struct config *config, const char *name, const char *path)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                if (strcmp(config->sources[i].path, path) == 0 ||
                    (name != NULL && strcmp(config->sources[i].name, name) == 0))
                        return 1;
        }
        return 0;
}

/* Return the name that the daemon has for a source: for its path, or else its own; NULL: it has neither. */
static const char *
find_loaded(const struct doctor *doctor, const struct config_source *source)
{
        const char *found = NULL;

        for (const struct json_value *each = doctor_age_first(doctor, "sources"); each != NULL;
             each = each->next) {
                const char *name = json_tree_text(each, "name"), *path = json_tree_text(each, "path");

                if (name == NULL || path == NULL)
                        continue;
                if (strcmp(path, source->path) == 0)
                        return name;
                if (strcmp(name, source->name) == 0 && !has_source(doctor->config, NULL, path))
                        found = name;
        }
        return found;
}

/* Return the only name of the daemon that is neither in the file nor for a path of it, or NULL. */
static const char *
find_only_removed(const struct doctor *doctor)
{
        const char *removed = NULL;

        for (const struct json_value *each = doctor_age_first(doctor, "sources"); each != NULL;
             each = each->next) {
                const char *name = json_tree_text(each, "name"), *path = json_tree_text(each, "path");

                if (name == NULL || path == NULL || has_source(doctor->config, name, path))
                        continue;
                if (removed != NULL)
                        return NULL;
                removed = name;
        }
        return removed;
}

/* Whether the daemon has read a secret of a source, which it calls so, as it is now. */
static int
has_read_secret(const struct doctor *doctor, const char *loaded, const char *path)
{
        const struct json_value *secrets = json_tree_get(doctor->status, "secrets"), *each;

        for (each = secrets == NULL ? NULL : secrets->first; each != NULL; each = each->next) {
                const char *source = json_tree_text(each, "source"), *file = json_tree_text(each, "file");

                if (source != NULL && file != NULL && strcmp(source, loaded) == 0 && strcmp(file, path) == 0)
                        break;
        }
        return (each != NULL || secrets == NULL) && doctor_age_has_read(doctor, doctor->status, path);
}

/* Whether a source of the file has a secret that the daemon has for the source that it calls so. */
static int
has_secret_of(const struct doctor *doctor, const struct config_source *source, const char *loaded)
{
        for (size_t i = 0; i < source->n_secret_files; i++) {
                if (has_read_secret(doctor, loaded, source->secret_files[i].path))
                        return 1;
        }
        return 0;
}

/* Whether a reload replaces all secrets of a source; one more than before is probably a previous one. */
static int
has_new_secrets(const struct doctor *doctor, const struct config_source *source, const char *loaded)
{
        if (status_number(find_named(doctor, loaded), "secrets") < (double)source->n_keys)
                return 0;
        return source->n_secret_files == source->n_keys && !has_secret_of(doctor, source, loaded);
}

/* Add what to do before a reload because of a source. */
static void
caution(const struct doctor *doctor, const struct config_source *source, char *text, size_t size)
{
        const struct config *config = doctor->config;
        const char *loaded = find_loaded(doctor, source), *removed = find_only_removed(doctor);
        const char *earlier = loaded == NULL ? removed : strcmp(loaded, source->name) != 0 ? loaded : NULL;
        int receives = (config->roles & CONFIG_RECEIVER) != 0;
        size_t len = strlen(text);
        const char *joint = len == 0 ? ", but first " : "; ";

        if (earlier != NULL && find_named(doctor, source->name) != NULL &&
            !has_secret_of(doctor, source, earlier))
                (void)snprintf(text + len, size - len,
                               "%ssee whether [source %s] is to have the path that [source %s] has now: its "
                               "secrets are for one of them only",
                               joint, source->name, earlier);
        else if (earlier != NULL)
                (void)snprintf(
                    text + len, size - len,
                    "%sif [source %s] is the one that was %s, give it that name: otherwise repeats of "
                    "its deliveries are published again",
                    joint, source->name, earlier);
        else if (loaded != NULL && (receives || config->verify) && has_new_secrets(doctor, source, loaded))
                (void)
                    snprintf(text + len, size - len,
                             "%ssee that the service signs with the secret of [source %s], or keep the "
                             "previous one as another secret_file: what is signed with that is %s otherwise",
                             joint, source->name, receives ? "refused" : "quarantined");
}

const char *
doctor_sources_caution(const struct doctor *doctor)
{
        static char text[1000];

        text[0] = '\0';
        for (size_t i = 0; i < doctor->config->n_sources; i++)
                caution(doctor, &doctor->config->sources[i], text, sizeof(text));
        return text;
}

const char *
doctor_sources_other(const struct doctor *doctor, const struct config_source *source)
{
        const char *loaded = find_loaded(doctor, source);

        return loaded == NULL || strcmp(loaded, source->name) == 0 ? NULL : loaded;
}
