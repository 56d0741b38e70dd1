#include "config/access_check.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/mem.h"
#include "base/unit.h"
#include "dedup/state_directory.h"

void
access_check_note(struct access_check *check, enum problem_level level, const char *option, size_t line,
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
note(struct access_check *check, enum problem_level level, const struct error *error)
{
        access_check_note(check, level, check->option, check->line, error->text);
}

static char *
make_way(const struct account *account, const char *path, const char *bits)
{
        const struct passwd *user = getpwuid(account->user);

        return account_make_way(account, user == NULL ? ACCOUNT_SERVICE_USER : user->pw_name, path, bits,
                                "restart gatepostd");
}

/* Report a directory that is used for something else, such as /var/lib: its owner and mode are left. */
static void
report_of_others(struct access_check *check, const char *path, const struct directory_contents *contents)
{
        char *usual = mem_printf(STATE_DIRECTORY "/%s", check->option);
        int is_usual = strcmp(path, usual) == 0;
        struct error error;

        (void)error_set(&error, "%.200s has other files; use a directory of its own%s%s%s", path,
                        is_usual ? "" : ", such as ", is_usual ? "" : usual,
                        contents->has_own
                            ? ", and move there, while gatepostd is stopped, what is its own in this one"
                            : "");
        note(check, PROBLEM_WARNING, &error);
        free(usual);
}

/* Report a directory that exists and that gatepostd may not write. It may have what was accepted. */
static void
report_unwritable(struct access_check *check, const char *path, const struct stat *status, int reason)
{
        struct error error;

        if (reason == EROFS)
                (void)error_set(&error,
                                "%.200s is in a file system that is mounted read-only; mount it writable",
                                path);
        else if (status->st_uid == check->account.user)
                (void)error_set(&error, "%.200s is not writable for gatepostd (mode %04o); chmod 700 %.200s",
                                path, (unsigned)(status->st_mode & 07777), path);
        else
                (void)error_set(
                    &error,
                    "%.200s is not writable for gatepostd; mount it if it is on a disk of its own, or "
                    "give it to the user of gatepostd (chown -R)",
                    path);
        note(check, PROBLEM_WARNING, &error);
}

/* Report a directory in which gatepostd may not create its own; it may be one of the system. */
static void
report_no_room(struct access_check *check, const char *path, const char *parent)
{
        const struct passwd *user = getpwuid(check->account.user);
        int is_of_unit = unit_is_below(path, STATE_DIRECTORY);
        struct error error;

        (void)error_set(&error,
                        "%.200s is not writable for gatepostd, which is to create it there; if it is on a "
                        "disk of its own, mount that, or create it: install -d -o %s -m 0700 %.200s%s%s%s",
                        parent, user == NULL ? "USER" : user->pw_name, path,
                        is_of_unit ? "" : ", which ReadWritePaths= of a systemd unit must name, or use ",
                        is_of_unit ? "" : STATE_DIRECTORY "/", is_of_unit ? "" : check->option);
        note(check, PROBLEM_WARNING, &error);
}

/* Files that another user has left, such as root, who ran gatepostd by hand. */
static void
check_files(struct access_check *check, const char *path)
{
        char file[PATH_MAX];
        struct error error;
        struct stat status;

        if (!directory_find_denied(path, check->owns, &check->account, file))
                return;
        if (lstat(file, &status) == 0 && status.st_uid == check->account.user)
                (void)error_set(&error, "gatepostd may not open %.200s, which is in it; chmod u+rw %.200s",
                                file, file);
        else
                (void)error_set(
                    &error,
                    "gatepostd may not open %.200s, which is in it; give all that is in it to the user "
                    "of gatepostd (chown -R)",
                    file);
        note(check, PROBLEM_WARNING, &error);
}

static void
check_readers(struct access_check *check, const char *path, const struct stat *status)
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

/* Report a link to something missing, such as a disk that is not mounted. Returns whether it is one. */
static int
is_dangling(struct access_check *check, const char *path)
{
        struct error error;
        struct stat status;

        if (lstat(path, &status) != 0 || !S_ISLNK(status.st_mode))
                return 0;
        (void)
            error_set(&error,
                      "%.200s is a symbolic link to something that is missing; mount its disk, or create the "
                      "directory",
                      path);
        note(check, PROBLEM_WARNING, &error);
        return 1;
}

/* Check where gatepostd will create the directory. Returns whether it can. */
static int
check_parent(struct access_check *check, const char *path, const char *parent)
{
        struct error error;
        struct stat status;
        const char *remedy;
        int reason;

        if (stat(parent, &status) != 0) {
                if (errno == ENOENT && !is_dangling(check, parent) &&
                    (strcmp(parent, STATE_DIRECTORY) != 0 || !unit_manager_runs())) {
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
        reason = account_access(&check->account, parent, W_OK | X_OK);
        if (reason == EROFS)
                report_unwritable(check, parent, &status, reason);
        else if (reason != 0)
                report_no_room(check, path, parent);
        return 1;
}

/*
 * Report what keeps gatepostd from the path, unless it need only be created. reason is the errno of stat(),
 * or 0. Returns whether it is so.
 */
static int
is_out_of_reach(struct access_check *check, const char *path, int reason)
{
        const struct unit_hiding *hiding = unit_hiding(path);
        char closed[PATH_MAX], *way;
        struct error error;

        if ((hiding == NULL || hiding->is_own) && account_find_closed(&check->account, path, closed)) {
                way = make_way(&check->account, closed, "x");
                (void)error_set(
                    &error, "gatepostd may not enter %.200s, which is above it; let its user enter it: %s",
                    closed, way);
                free(way);
                note(check, PROBLEM_WARNING, &error);
        } else if (reason == ENOENT && is_dangling(check, path)) {
                return 1;
        } else if (reason == ELOOP || reason == ENAMETOOLONG) {
                (void)error_set(&error, "%.200s: %s; name another one", path, strerror(reason));
                note(check, PROBLEM_ERROR, &error);
        } else {
                return 0;
        }
        return 1;
}

/* Check a directory that exists. Returns whether gatepostd has it for itself. */
static int
check_existing(struct access_check *check, const char *path, const struct stat *status)
{
        const struct directory_contents contents = directory_look(path, check->owns);
        int reason = account_access(&check->account, path, W_OK | X_OK);

        if (contents.has_other && !(contents.has_own && reason == 0)) {
                report_of_others(check, path, &contents);
                return 0;
        }
        if (reason == 0)
                check_files(check, path);
        else
                report_unwritable(check, path, status, reason);
        check_readers(check, path, status);
        return 1;
}

char *
access_check_directory(struct access_check *check, const char *path)
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
                if (check_existing(check, path, &status))
                        on = mem_strdup(path);
        } else if (reason == 0) {
                (void)error_set(&error, "%.200s is not a directory; name another one", path);
                note(check, PROBLEM_ERROR, &error);
        } else if ((reason == ENOENT || reason == ENOTDIR) && check_parent(check, path, parent)) {
                on = mem_strdup(parent);
        }
        free(copy);
        return on;
}

int
access_check_state(const struct config *config, problems_reporter *report)
{
        struct access_check check = {config,
                                     report,
                                     {0},
                                     "router",
                                     "state",
                                     config->state_line,
                                     "has the key of digests",
                                     state_directory_owns,
                                     0};
        struct error error;

        if (config->state == NULL || !(config->roles & CONFIG_ROUTER))
                return 0;
        check.account = account_service();
        if (config->spool != NULL && strcmp(config->spool, config->state) == 0) {
                (void)error_set(&error, "%.200s is the spool; use a directory of its own, such as %s",
                                config->state, STATE_DIRECTORY "/state");
                note(&check, PROBLEM_ERROR, &error);
        }
        free(access_check_directory(&check, config->state));
        account_clear(&check.account);
        return check.has_error ? -1 : 0;
}

/* What the units hide is reported otherwise. */
static void
check_file(const struct access_check *check, const struct config_file *file)
{
        char closed[PATH_MAX], *way;
        struct error error;
        struct problem problem = {.level = PROBLEM_WARNING, .line = file->line, .text = error.text};
        int mode = S_ISDIR(file->st.st_mode) ? R_OK | X_OK : R_OK;

        if (unit_hiding(file->path) != NULL || account_access(&check->account, file->path, mode) != EACCES)
                return;
        if (account_find_closed(&check->account, file->path, closed)) {
                way = make_way(&check->account, closed, "x");
                (void)error_set(
                    &error,
                    "gatepostd may not enter %.200s, in which %.200s is; let its user, " ACCOUNT_SERVICE_USER
                    ", enter it: %s",
                    closed, file->path, way);
        } else {
                way = make_way(&check->account, file->path, S_ISDIR(file->st.st_mode) ? "rx" : "r");
                (void)
                    error_set(&error,
                              "gatepostd may not read %.200s (mode %04o); let its user, " ACCOUNT_SERVICE_USER
                              ", read it: %s",
                              file->path, (unsigned)(file->st.st_mode & 07777), way);
        }
        free(way);
        check->report(check->config->file, &problem);
}

void
access_check_files(const struct config *config, problems_reporter *report)
{
        struct access_check check = {.config = config, .report = report, .account = account_service()};

        if (check.account.user != geteuid() && unit_hiding(config->files[0].path) == NULL) {
                for (size_t i = 0; i < config->n_files; i++)
                        check_file(&check, &config->files[i]);
        }
        account_clear(&check.account);
}
