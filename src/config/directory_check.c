#include "config/directory_check.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"
#include "dedup/state_directory.h"

void
directory_check_note(struct directory_check *check, enum problem_level level, const char *option, size_t line,
                     const char *text)
{
        char whole[640];
        const struct problem problem = {
            .level = level, .line = line, .text = whole, .section = check->section, .option = option};

        (void)snprintf(whole, sizeof(whole), "%s: %s", option, text);
        check->report(check->config->file, &problem);
        check->has_error |= level == PROBLEM_ERROR;
}

static void
note(struct directory_check *check, enum problem_level level, const struct error *error)
{
        directory_check_note(check, level, check->option, check->line, error->text);
}

/*
 * Returns whether it is so. Only for a directory that is to be created another one is as good: this one may
 * have what was accepted.
 */
static int
check_writable(struct directory_check *check, const char *path, const struct stat *status, int is_parent)
{
        struct error error;

        if (account_may(&check->account, path, status, W_OK | X_OK))
                return 1;
        (void)error_set(&error,
                        "%.200s is not writable for gatepostd; mount it if it is on a disk of its own, or "
                        "give it to the user of gatepostd (%s)%s%s",
                        path, is_parent ? "chown" : "chown -R",
                        is_parent ? ", or use " STATE_DIRECTORY "/" : "", is_parent ? check->option : "");
        note(check, PROBLEM_WARNING, &error);
        return 0;
}

/* Files that another user has left, such as root, who ran gatepostd by hand. */
static void
check_files(struct directory_check *check, const char *path)
{
        DIR *open = opendir(path);
        const struct dirent *entry;
        struct stat status;
        struct error error;
        int found = 0;

        while (open != NULL && !found && (entry = readdir(open)) != NULL) {
                char *file = mem_printf("%s/%s", path, entry->d_name);

                found = check->owns(entry->d_name) && lstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                        !account_may(&check->account, file, &status, R_OK);
                if (found)
                        (void)error_set(&error,
                                        "%.200s, which is in it, is not readable for gatepostd; give all "
                                        "that is in it to the user of gatepostd (chown -R)",
                                        file);
                free(file);
        }
        if (open != NULL)
                (void)closedir(open);
        if (found)
                note(check, PROBLEM_WARNING, &error);
}

static void
check_readers(struct directory_check *check, const char *path, const struct stat *status)
{
        const uid_t user = check->account.user;
        const unsigned mode = status->st_mode & 07777;
        struct error error;

        if ((mode & (S_IRWXG | S_IRWXO)) == 0)
                return;
        if (user == status->st_uid || user == 0) /* it can use the directory after that */
                (void)error_set(&error, "others can open %.200s (mode %04o), which %s; chmod 700 %.200s",
                                path, mode, check->content, path);
        else
                (void)error_set(&error,
                                "others can open %.200s (mode %04o), which %s; chown it to the user of "
                                "gatepostd and chmod 700; or, if it is empty, name a subdirectory of it, "
                                "which gatepostd creates",
                                path, mode, check->content);
        note(check, PROBLEM_WARNING, &error);
}

/* Check where gatepostd will create the directory. Returns whether it can. */
static int
check_parent(struct directory_check *check, const char *parent)
{
        struct error error;
        struct stat status;
        const char *remedy;

        if (stat(parent, &status) != 0) {
                if (errno == ENOENT && (strcmp(parent, STATE_DIRECTORY) != 0 || !unit_manager_runs())) {
                        remedy = unit_remedy_for_directory(parent, ENOENT);
                        (void)error_set(&error, "%.200s: %s%s", parent, strerror(ENOENT),
                                        *remedy == '\0' ? "; create it for the user of gatepostd" : remedy);
                        note(check, PROBLEM_ERROR, &error);
                }
                return 0;
        }
        if (!S_ISDIR(status.st_mode)) {
                (void)error_set(&error, "%.200s is not a directory; name another one", parent);
                note(check, PROBLEM_ERROR, &error);
                return 0;
        }
        (void)check_writable(check, parent, &status, 1);
        return 1;
}

/*
 * Report what keeps gatepostd from the path, unless it need only be created. reason is the errno of stat(),
 * or 0. Returns whether it is so.
 */
static int
is_out_of_reach(struct directory_check *check, const char *path, int reason)
{
        const struct unit_hiding *hiding = unit_hiding(path);
        char closed[PATH_MAX];
        struct error error;
        struct stat status;

        if ((hiding == NULL || hiding->is_own) && account_find_closed(&check->account, path, closed)) {
                (void)error_set(&error,
                                "gatepostd may not enter %.200s, which is above it; let its user enter it, "
                                "for example by chmod o+x %.200s",
                                closed, closed);
                note(check, PROBLEM_WARNING, &error);
        } else if (reason == ENOENT && lstat(path, &status) == 0) {
                (void)error_set(&error,
                                "%.200s is a symbolic link to something that is missing; mount its disk, or "
                                "create the directory",
                                path);
                note(check, PROBLEM_WARNING, &error);
        } else if (reason == ELOOP || reason == ENAMETOOLONG) {
                (void)error_set(&error, "%.200s: %s; name another one", path, strerror(reason));
                note(check, PROBLEM_ERROR, &error);
        } else {
                return 0;
        }
        return 1;
}

char *
directory_check(struct directory_check *check, const char *path)
{
        char *copy, *on = NULL;
        const char *parent;
        struct error error;
        struct stat status;
        int reason = stat(path, &status) == 0 ? 0 : errno;

        if (is_out_of_reach(check, path, reason))
                return NULL;
        copy = mem_strdup(path);
        parent = dirname(copy);
        if (reason == 0 && S_ISDIR(status.st_mode)) {
                if (check_writable(check, path, &status, 0))
                        check_files(check, path);
                check_readers(check, path, &status);
                on = mem_strdup(path);
        } else if (reason == 0) {
                (void)error_set(&error, "%.200s is not a directory; name another one", path);
                note(check, PROBLEM_ERROR, &error);
        } else if ((reason == ENOENT || reason == ENOTDIR) && check_parent(check, parent)) {
                on = mem_strdup(parent);
        }
        free(copy);
        return on;
}

int
directory_check_state(const struct config *config, problems_reporter *report)
{
        struct directory_check check = {config,
                                        report,
                                        account_service(),
                                        "router",
                                        "state",
                                        config->state_line,
                                        "has the key of digests",
                                        state_directory_owns,
                                        0};
        struct error error;

        if (config->state == NULL || !(config->roles & CONFIG_ROUTER))
                return 0;
        if (config->spool != NULL && strcmp(config->spool, config->state) == 0) {
                (void)error_set(&error, "%.200s is the spool; use a directory of its own, such as %s",
                                config->state, STATE_DIRECTORY "/state");
                note(&check, PROBLEM_ERROR, &error);
        }
        free(directory_check(&check, config->state));
        return check.has_error ? -1 : 0;
}
