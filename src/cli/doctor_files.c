#include "cli/doctor_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "cli/status.h"
#include "config/ini.h"

/*
 * Whether the daemon's user may read the files that the configuration names, and write its directories. That
 * is the user of the running daemon, or else of the systemd unit. Only root can try.
 */

#define UNIT_USER "gatepost"
#define HOME SYSCONFDIR "/gatepost/"

static const char *
user_name(void)
{
        const struct passwd *user = getpwuid(geteuid());

        return user == NULL ? "this user" : user->pw_name;
}

static const char *
group_name(const struct passwd *user)
{
        const struct group *group = getgrgid(user->pw_gid);

        return group == NULL ? user->pw_name : group->gr_name;
}

/* Try to access a file as a user, in a process of its own; NULL: as this one. Returns 0 or an errno. */
static int
try_as(const struct passwd *user, const char *path, int mode)
{
        pid_t child;
        int status;

        if (user == NULL)
                return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;
        child = fork();
        if (child == 0) {
                if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
                    setuid(user->pw_uid) != 0)
                        _exit(EPERM);
                _exit(faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                return 0;
        return WEXITSTATUS(status);
}

/* Write the first directory of a path that a user may not enter. Returns whether there is one. */
static int
find_closed(const struct passwd *user, const char *path, char directory[PATH_MAX])
{
        for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
                (void)snprintf(directory, PATH_MAX, "%.*s", (int)(at - path), path);
                if (try_as(user, directory, X_OK) == EACCES)
                        return 1;
        }
        return 0;
}

void
doctor_files_advise(struct doctor *doctor, const char *path)
{
        char directory[PATH_MAX];

        if (path != NULL && find_closed(NULL, path, directory))
                doctor_remedy(doctor,
                              "run it as a user who may enter %s, such as the daemon's: sudo -u " UNIT_USER
                              " gatepost -c %s doctor; if the daemon cannot enter it either: chgrp " UNIT_USER
                              " %s && chmod g+x %s (you are %s)",
                              directory, doctor->file, directory, directory, user_name());
        else
                doctor_remedy(doctor,
                              "run it as a user who may read it, such as the daemon's: sudo -u " UNIT_USER
                              " gatepost -c %s doctor; if the daemon cannot read it either: chgrp " UNIT_USER
                              " FILE && chmod 0640 FILE (you are %s)",
                              doctor->file, user_name());
}

static void
check_file(struct doctor *doctor, const struct passwd *user, const char *path)
{
        int code = try_as(user, path, R_OK);
        char directory[PATH_MAX];

        doctor_begin(doctor, "files", "%s", path);
        if (code == 0) {
                doctor_pass(doctor, "the daemon's user, %s, may read it", user->pw_name);
                return;
        }
        doctor_fail(doctor, EX_NOPERM, "the daemon's user, %s, cannot read it: %s", user->pw_name,
                    strerror(code));
        if (find_closed(user, path, directory))
                doctor_remedy(doctor, "let %s enter the directory: chgrp %s %s && chmod g+x %s",
                              user->pw_name, group_name(user), directory, directory);
        else
                doctor_remedy(doctor, "chgrp %s %s && chmod 0640 %s", group_name(user), path, path);
}

/* The daemon creates a directory that does not exist. */
static void
check_directory(struct doctor *doctor, const struct passwd *user, const char *path)
{
        char *copy = mem_strdup(path);
        const char *on = access(path, F_OK) == 0 ? path : dirname(copy);
        int code = try_as(user, on, W_OK | X_OK);

        doctor_begin(doctor, "files", "%s", path);
        if (code == 0) {
                doctor_pass(doctor, "the daemon's user, %s, may write it", user->pw_name);
        } else {
                doctor_fail(doctor, EX_NOPERM, "the daemon's user, %s, cannot write %s: %s", user->pw_name,
                            on == path ? "it" : on, strerror(code));
                doctor_remedy(doctor, "install -d -o %s -m 0700 %s; %s must be able to enter those above it",
                              user->pw_name, path, user->pw_name);
        }
        free(copy);
}

/* Return whether the value of an option is a file. */
static int
is_file(const struct ini_entry *entry)
{
        static const char *const ends[] = {"_file", ".location"};
        size_t len = entry->name == NULL ? 0 : strlen(entry->name);

        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                size_t n = strlen(ends[i]);

                if (len > n && strcmp(entry->name + len - n, ends[i]) == 0)
                        return entry->value[0] == '/' && strcmp(entry->section, "service") != 0;
        }
        return 0;
}

/* As root: try everything as the daemon's user. */
static void
check_all_as(struct doctor *doctor, const struct passwd *user)
{
        const struct config *config = doctor->config;
        struct problems problems = {.file = doctor->file};
        struct ini ini;

        check_file(doctor, user, doctor->file);
        if (ini_read_file(doctor->file, &ini, &problems) == 0) {
                for (size_t i = 0; i < ini.n; i++) {
                        if (is_file(&ini.entries[i]))
                                check_file(doctor, user, ini.entries[i].value);
                }
        }
        ini_clear(&ini);
        problems_clear(&problems);
        if (config->spool != NULL && config->roles & CONFIG_RECEIVER)
                check_directory(doctor, user, config->spool);
        if (config->state != NULL && config->roles & CONFIG_ROUTER)
                check_directory(doctor, user, config->state);
}

/* Return the daemon's user, or NULL if it is not known. It is valid until the next call of getpwuid(). */
static const struct passwd *
find_user(const struct doctor *doctor)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const struct json_value *id = json_tree_get(status, "userId");
        const struct passwd *user = NULL;

        if (id != NULL)
                user = getpwuid((uid_t)status_value(id));
        else if (strncmp(doctor->file, HOME, strlen(HOME)) == 0)
                user = getpwnam(UNIT_USER);
        json_tree_free(status);
        return user;
}

/* Reading the configuration has shown which files this user can read. */
void
doctor_check_files(struct doctor *doctor)
{
        const struct passwd *found = find_user(doctor);
        struct passwd user = {0};

        doctor_begin(doctor, "files", "%s", "");
        if (found != NULL && found->pw_uid != geteuid() && geteuid() == 0) {
                user = *found;
                user.pw_name = mem_strdup(found->pw_name);
                doctor_pass(doctor, "you are root, and the daemon runs as %s", user.pw_name);
                check_all_as(doctor, &user);
                free(user.pw_name);
        } else if (found != NULL && found->pw_uid != geteuid()) {
                doctor_skip(doctor,
                            "this user can read all files that the configuration names; whether the daemon's "
                            "user, %s, can is not verified: run gatepost doctor as root",
                            found->pw_name);
        } else if (found == NULL && geteuid() == 0) {
                doctor_warn(
                    doctor,
                    "root can read all files that the configuration names; whether the daemon's user "
                    "can, and write its directories, is not known: run gatepost doctor as that user, or "
                    "while gatepostd runs");
        } else {
                doctor_pass(doctor, "%s can read all files that the configuration names", user_name());
        }
}
