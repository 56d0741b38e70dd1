#include "config/hidden_paths.h"

#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/unit.h"

/* The options that name what gatepostd makes. */
static const struct {
        const char *section, *name;
        unsigned role; /* that uses it; 0: any */
        const char *instead;
} made[] = {
    {"receiver", "spool", CONFIG_RECEIVER, "use " STATE_DIRECTORY "/spool"},
    {"router", "state", CONFIG_ROUTER, "use " STATE_DIRECTORY "/state"},
    {"receiver", "listen", CONFIG_RECEIVER, "use unix:/run/gatepost/receiver.sock"},
    {"admin", "listen", 0, "use unix:/run/gatepost/admin.sock"},
};

/* Return whether an option names a file that a process with these roles reads. */
static int
names_file(const struct ini_entry *entry, unsigned roles)
{
        static const char *const ends[] = {"_file", ".location", ".key.file", ".assertion.file", ".keytab"};
        size_t len = entry->name == NULL ? 0 : strlen(entry->name);

        if (!(roles & CONFIG_RECEIVER) && strcmp(entry->section, "receiver") == 0)
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                size_t n = strlen(ends[i]);

                if (len > n && strcmp(entry->name + len - n, ends[i]) == 0)
                        return 1;
        }
        return 0;
}

int
hidden_paths_is_file(const struct ini_entry *entry, unsigned roles)
{
        return names_file(entry, roles) && entry->value[0] == '/';
}

/* Return what to do about a path of an option that is hidden so, or NULL if it does not matter. */
static const char *
find_instead(const struct ini_entry *entry, const struct unit_hiding *hiding, unsigned roles)
{
        /* gatepostd only looks whether the files of [service] exist, and accepts that it may not see it. */
        if (hidden_paths_is_file(entry, roles))
                return strcmp(entry->section, "service") != 0 || hiding->is_own ? "move it to /etc/gatepost"
                                                                                : NULL;
        for (size_t i = 0; i < ARRAY_LEN(made) && !hiding->is_own; i++) { /* those in /tmp are reported */
                if (strcmp(entry->section, made[i].section) == 0 && strcmp(entry->name, made[i].name) == 0)
                        return made[i].role == 0 || (roles & made[i].role) ? made[i].instead : NULL;
        }
        return NULL;
}

static void
check_entry(const struct ini_entry *entry, unsigned roles, struct problems *problems)
{
        static const char socket[] = "unix:";
        int is_socket = strncmp(entry->value, socket, strlen(socket)) == 0;
        const char *path = entry->value + (is_socket ? strlen(socket) : 0), *instead;
        const struct unit_hiding *hiding = *path == '/' ? unit_hiding(path) : NULL;

        if (*path != '/' && names_file(entry, roles) && access(path, F_OK) == 0)
                problems_warn(
                    problems, entry->line,
                    "%s: a relative path, which leads elsewhere when a systemd unit runs gatepostd; "
                    "write an absolute path",
                    entry->name);
        instead = hiding == NULL ? NULL : find_instead(entry, hiding, roles);
        if (instead == NULL)
                return;
        problems_warn(problems, entry->line, "%s: %.200s: the systemd units hide %s from gatepostd (%s); %s",
                      entry->name, entry->value, hiding->directory, hiding->setting, instead);
        problems->items[problems->n - 1].is_hidden = 1;
}

/*
 * A configuration that is hidden itself is read by none of the units, unless it has another name, by a link:
 * then the units are to read it.
 */
void
hidden_paths_warn(const struct config *config, const struct ini *ini, struct problems *problems)
{
        const char *file = config->files[0].path;
        const struct unit_hiding *hiding = unit_hiding(file);

        if (unit_runs_this() || (hiding != NULL && unit_is_below(file, hiding->directory)))
                return;
        if (hiding != NULL) {
                problems_warn(problems, 0,
                              "the file is a link into %s, which the systemd units hide from gatepostd (%s); "
                              "move it to /etc/gatepost",
                              hiding->directory, hiding->setting);
                problems->items[problems->n - 1].is_hidden = 1;
        }
        for (size_t i = 0; i < ini->n; i++) {
                if (ini->entries[i].name != NULL)
                        check_entry(&ini->entries[i], config->roles, problems);
        }
}
