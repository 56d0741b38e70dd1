#include "base/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"

#define HIDING(directory, is_own, setting) \
        { \
                directory, setting, is_own, \
                    "; the systemd unit hides " directory " from gatepostd (" setting \
                    "): move it to /etc/gatepost", \
                    "; the systemd unit hides " directory " from gatepostd (" setting \
                    "): move it to /var/lib/gatepost" \
        }

static const struct unit_hiding hidings[] = {
    HIDING("/home", 0, "ProtectHome="),     HIDING("/root", 0, "ProtectHome="),
    HIDING("/run/user", 0, "ProtectHome="), HIDING("/tmp", 1, "PrivateTmp="),
    HIDING("/var/tmp", 1, "PrivateTmp="),
};

#define MADE(directory) \
        { \
                directory, \
                    "; systemd, which makes " directory \
                    ", does not run here: mount a volume there, or create it for the user of gatepostd" \
        }

static const struct {
        const char *directory;
        const char *remedy; /* without systemd */
} made[] = {MADE(STATE_DIRECTORY), MADE(SERVICE_DIRECTORY)};

/* Return an absolute path without empty names, "." and "..", to be freed; the root directory is empty. */
static char *
normalize(const char *path)
{
        char *normal = mem_alloc(strlen(path) + 2), *end = normal;

        while (*path != '\0') {
                size_t len = strcspn(path, "/");

                if (len == 2 && memcmp(path, "..", len) == 0) {
                        while (end > normal && *--end != '/')
                                ;
                } else if (len > 1 || (len == 1 && *path != '.')) {
                        *end++ = '/';
                        end = mempcpy(end, path, len);
                }
                path += len;
                path += strspn(path, "/");
        }
        *end = '\0';
        return normal;
}

int
unit_is_below(const char *path, const char *directory)
{
        char *normal = normalize(path);
        size_t len = strlen(directory);
        int is_below = strncmp(normal, directory, len) == 0 && (normal[len] == '/' || normal[len] == '\0');

        free(normal);
        return is_below;
}

static const struct unit_hiding *
find(const char *path)
{
        for (size_t i = 0; i < ARRAY_LEN(hidings); i++) {
                if (unit_is_below(path, hidings[i].directory))
                        return &hidings[i];
        }
        return NULL;
}

/* Where it fails, glibc's realpath() leaves the path that it could not resolve. */
const struct unit_hiding *
unit_hiding(const char *path)
{
        char real[PATH_MAX] = "";
        const struct unit_hiding *hiding = find(path);

        if (hiding != NULL)
                return hiding;
        (void)!realpath(path, real);
        return find(real);
}

int
unit_has_own(const char *path)
{
        const struct unit_hiding *hiding = unit_hiding(path);

        return hiding != NULL && hiding->is_own;
}

const char *
unit_role(const char *file)
{
        static const char *const roles[] = {"router", "receiver"};
        static const char ending[] = ".conf";
        const char *slash = strrchr(file, '/'), *base = slash == NULL ? file : slash + 1;
        size_t len = strlen(base), ending_len = strlen(ending);

        for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
                size_t prefix = strlen(roles[i]);

                if (len > prefix + 1 + ending_len && strncmp(base, roles[i], prefix) == 0 &&
                    base[prefix] == '-' && strcmp(base + len - ending_len, ending) == 0)
                        return roles[i];
        }
        return NULL;
}

int
unit_runs_this(void)
{
        const char *pid = getenv("SYSTEMD_EXEC_PID"); /* since systemd 248 */

        return getenv("INVOCATION_ID") != NULL && (pid == NULL || strtol(pid, NULL, 10) == getpid());
}

int
unit_manager_runs(void)
{
        return access("/run/systemd/system", F_OK) == 0;
}

/* Return what has hidden a path from this process, or NULL. A closed directory cannot be entered. */
static const struct unit_hiding *
find_cause(const char *path, int reason)
{
        const struct unit_hiding *hiding = NULL;
        int is_hidden;

        if ((reason == ENOENT || reason == EACCES) && unit_runs_this())
                hiding = unit_hiding(path);
        is_hidden = hiding != NULL && (hiding->is_own || access(hiding->directory, X_OK) != 0);
        errno = reason; /* other arguments of a message may read it */
        return is_hidden ? hiding : NULL;
}

const char *
unit_remedy(const char *path, int reason)
{
        const struct unit_hiding *cause = find_cause(path, reason);

        if (*path != '/' && reason == ENOENT)
                return "; it is sought in the directory in which the process runs, which is / for a service: "
                       "write an absolute path";
        return cause == NULL ? "" : cause->of_file;
}

const char *
unit_remedy_without_manager(const char *path)
{
        struct stat status;

        /* A link to something that is missing is another matter. */
        for (size_t i = 0; i < ARRAY_LEN(made) && !unit_manager_runs(); i++) {
                if (unit_is_below(path, made[i].directory) && lstat(made[i].directory, &status) != 0)
                        return made[i].remedy;
        }
        return "";
}

/* By ProtectSystem=strict of the units, everything but their own directories is read-only for gatepostd. */
const char *
unit_remedy_for_directory(const char *path, int reason)
{
        const struct unit_hiding *cause = find_cause(path, reason);

        if (reason == EROFS)
                return "; if a systemd unit runs gatepostd, create the directory for its user and name it in "
                       "ReadWritePaths= of the unit (systemctl edit UNIT), else mount the disk writable";
        if (cause == NULL && reason == ENOENT)
                return unit_remedy_without_manager(path);
        return cause == NULL ? "" : cause->of_directory;
}
