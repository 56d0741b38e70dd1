#include "cli/doctor_sight.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/mem.h"
#include "base/unit.h"
#include "cli/doctor_daemon.h"
#include "config/endpoint.h"

#define DAEMON "gatepostd"
#define PROCESS_FILE_SIZE 8192

/* Read a file of a process, with a NUL behind it. Returns the number of bytes, 0 if there are none. */
static size_t
read_process(const char *pid, const char *name, char *text, size_t size)
{
        char *path = mem_printf("/proc/%s/%s", pid, name);
        FILE *in = fopen(path, "re");
        size_t len = in == NULL ? 0 : fread(text, 1, size - 1, in);

        free(path);
        if (in != NULL)
                (void)fclose(in);
        text[len] = '\0';
        return len;
}

/* Whether a process is a gatepostd, of this user unless NULL. */
static int
is_daemon(const char *pid, const uid_t *uid)
{
        char text[PROCESS_FILE_SIZE];
        unsigned effective;
        const char *line;

        if (read_process(pid, "comm", text, sizeof(text)) == 0 || strcmp(text, DAEMON "\n") != 0)
                return 0;
        (void)read_process(pid, "status", text, sizeof(text));
        line = strstr(text, "\nUid:");
        return line != NULL && sscanf(line, "\nUid: %*u %u", &effective) == 1 &&
               (uid == NULL || effective == *uid);
}

/* Return the file that the arguments of a gatepostd name: -c FILE, -cFILE, --config FILE, --config=FILE. */
static const char *
configuration_of(const char *arguments, size_t len)
{
        const char *file = CONFIG_DEFAULT_FILE, *equals;

        for (size_t i = strlen(arguments) + 1; i < len; i += strlen(arguments + i) + 1) {
                const char *argument = arguments + i;

                if (argument[0] != '-')
                        file = argument;
                else if (argument[1] == 'c' && argument[2] != '\0')
                        file = argument + 2;
                else if (argument[1] == '-' && (equals = strchr(argument, '=')) != NULL)
                        file = equals + 1;
        }
        return file;
}

/*
 * Whether a gatepostd was started with this file, however it was named. A file that is mounted at two places
 * has one inode; a file that was replaced since has the same path only. Its own name for the file is set in
 * *named unless NULL, to be freed; NULL: it has ended.
 */
static int
has_file(const char *pid, const char *file, char **named)
{
        char arguments[PROCESS_FILE_SIZE], *there;
        size_t len = read_process(pid, "cmdline", arguments, sizeof(arguments));
        const char *its = configuration_of(arguments, len);
        struct stat theirs, ours;
        int result;

        if (named != NULL)
                *named = len == 0 ? NULL : mem_strdup(its);
        if (len == 0) /* it has ended */
                return 0;
        there = mem_printf("/proc/%s/%s/%s", pid, its[0] == '/' ? "root" : "cwd", its);
        result = (stat(there, &theirs) == 0 && stat(file, &ours) == 0 && theirs.st_dev == ours.st_dev &&
                  theirs.st_ino == ours.st_ino) ||
                 doctor_daemon_is_same_path(its[0] == '/' ? its : there, file);
        free(there);
        return result;
}

/* Return the id of the next process that is a gatepostd, of this user unless NULL; NULL: there is none. */
static const char *
next_daemon(DIR *all, const uid_t *uid)
{
        const struct dirent *entry;

        while (all != NULL && (entry = readdir(all)) != NULL) {
                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && is_daemon(entry->d_name, uid))
                        return entry->d_name;
        }
        return NULL;
}

/* Return the path of the root directory of the gatepostd with the file, to be freed; NULL: not known. */
static char *
find_root(const char *file, const uid_t *uid)
{
        DIR *all = opendir("/proc");
        const char *pid;
        char *root = NULL;
        size_t n = 0;

        while ((pid = next_daemon(all, uid)) != NULL) {
                if (!has_file(pid, file, NULL))
                        continue;
                free(root);
                root = mem_printf("/proc/%s/root", pid);
                n++;
        }
        if (all != NULL)
                (void)closedir(all);
        if (n == 1 && identity_try_at(root, "/", F_OK) == 0)
                return root;
        free(root); /* which of them answers is not known, or its files cannot be looked at */
        return NULL;
}

void
doctor_sight_find(const struct doctor *doctor, struct identity *identity)
{
        if (identity->is_running)
                identity->root = find_root(doctor->file, &identity->account.user);
}

enum doctor_sight
doctor_sight_of(const struct doctor *doctor, const char *path)
{
        char *root = find_root(doctor->file, NULL);
        int code = root == NULL ? ACCOUNT_CANNOT_TRY : identity_try_at(root, path, F_OK);
        char *there = mem_printf("%s%s", root == NULL ? "" : root, path);
        enum doctor_sight sight = DOCTOR_SIGHT_SHARED;
        struct stat theirs, ours;

        if (code == ENOENT)
                sight = DOCTOR_SIGHT_ABSENT;
        else if (code != 0)
                sight = DOCTOR_SIGHT_UNKNOWN;
        else if (stat(path, &ours) != 0 || (stat(there, &theirs) == 0 &&
                                            (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino)))
                sight = DOCTOR_SIGHT_OTHER;
        free(there);
        free(root);
        return sight;
}

static void
ignore_problem(const char *file, const struct problem *problem)
{
        (void)file;
        (void)problem;
}

/* Whether a gatepostd with the file, as it is on this machine, has this address for deliveries. */
static int
listens_there(const char *file, const struct config_listen *listen)
{
        struct config *config = config_load_reporting(file, ignore_problem);
        int result = 0;

        for (size_t i = 0; config != NULL && config->roles & CONFIG_RECEIVER && i < config->n_listen; i++)
                result |= endpoint_conflicts(&config->listen[i], listen);
        config_free(config);
        return result;
}

char *
doctor_sight_holder(const struct doctor *doctor, const struct config_listen *listen)
{
        DIR *all = opendir("/proc");
        const char *pid;
        char *holder = NULL, *file;
        int runs = 0;

        while (!runs && (pid = next_daemon(all, NULL)) != NULL) {
                runs = has_file(pid, doctor->file, &file);
                if (!runs && holder == NULL && file != NULL && file[0] == '/' &&
                    listens_there(file, listen)) {
                        holder = file;
                        file = NULL;
                }
                free(file);
        }
        if (all != NULL)
                (void)closedir(all);
        if (!runs)
                return holder;
        free(holder);
        return NULL;
}

int
doctor_sight_is_private(const char *path)
{
        const struct unit_hiding *hiding = unit_hiding(path);

        return hiding != NULL && !hiding->is_own;
}

/* Whether the daemon's user is that of the unit, so that it probably runs in it. */
static int
is_of_unit(const struct identity *identity)
{
        return strcmp(identity->name, ACCOUNT_SERVICE_USER) == 0;
}

int
doctor_sight_hides(const struct identity *identity, const char *path)
{
        if (access(path, F_OK) != 0)
                return 0;
        if (identity->root != NULL)
                return identity_try_at(identity->root, path, F_OK) == ENOENT;
        return is_of_unit(identity) && unit_hiding(path) != NULL;
}

int
doctor_sight_is_read_only(const struct identity *identity, const char *path, const char *on)
{
        if (identity->root != NULL)
                return identity_try_at(identity->root, on, W_OK) == EROFS && access(on, W_OK) == 0;
        return is_of_unit(identity) && !unit_is_below(path, STATE_DIRECTORY);
}
