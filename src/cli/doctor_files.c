#include "cli/doctor_daemon.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/account.h"
#include "base/compiler.h"
#include "base/directory.h"
#include "base/mem.h"
#include "base/unit.h"
#include "cli/doctor_sight.h"
#include "cli/identity.h"
#include "cli/status.h"
#include "config/hidden_paths.h"
#include "dedup/state_directory.h"
#include "spool/spool_directory.h"

/*
 * Whether the daemon's user may read the files that the configuration names, and write its directories. That
 * is the user of the running daemon with the groups of its process, or else the user of the systemd unit.
 * Only root can try.
 */

#define HOME SYSCONFDIR "/gatepost/"

static const char *
user_name(void)
{
        const struct passwd *user = getpwuid(geteuid());

        return user == NULL ? "this user" : user->pw_name;
}

/*
 * After a failure: if the user may access the file by a group that the process lacks, only a restart helps.
 * Returns whether it is so.
 */
static int
advise_restart(struct doctor *doctor, const struct identity *identity, const char *path, int mode)
{
        const struct passwd *user = identity->is_running ? getpwuid(identity->account.user) : NULL;
        struct account started;
        int helps;

        if (user == NULL)
                return 0;
        started = account_of(user, identity->account.group);
        helps = account_try(&started, path, mode) == 0;
        account_clear(&started);
        if (helps)
                doctor_remedy(doctor,
                              "%s is a member of a group that may, and was not when gatepostd started: %s",
                              identity->name, doctor_restart(doctor));
        return helps;
}

static char *
make_way(struct doctor *doctor, const struct identity *identity, const char *path, const char *bits)
{
        return account_make_way(&identity->account, identity->name, path, bits, doctor_restart(doctor));
}

void
doctor_files_advise(struct doctor *doctor, const char *path)
{
        const struct account own = account_this();
        char directory[PATH_MAX];
        int is_closed = path != NULL && account_find_closed(&own, path, directory);
        const struct passwd *user = getpwnam(ACCOUNT_SERVICE_USER);
        char name[] = ACCOUNT_SERVICE_USER;
        struct identity unit = {.account = {.user = user == NULL ? (uid_t)-1 : user->pw_uid,
                                            .group = user == NULL ? ACCOUNT_UNKNOWN_GROUP : user->pw_gid},
                                .name = name};
        char *way = path == NULL ? mem_strdup("let it read the file")
                    : doctor_sight_is_private(path)
                        ? mem_strdup("move it to /etc/gatepost, since ProtectHome= of the unit hides it")
                        : make_way(doctor, &unit, is_closed ? directory : path, is_closed ? "x" : "r");

        doctor_remedy(doctor,
                      "run it as a user who may %s %s, such as the daemon's: sudo -u " ACCOUNT_SERVICE_USER
                      " @GATEPOST@ doctor; if the daemon cannot either: %s (you are %s)",
                      is_closed ? "enter" : "read", is_closed ? directory : "it", way, user_name());
        free(way);
}

/* Report that the daemon's user cannot access a file. */
static void
report_denied(struct doctor *doctor, const struct identity *identity, const char *what, int code)
{
        doctor_fail(doctor, EX_NOPERM, "the daemon's user, %s, cannot %s: %s%s", identity->name, what,
                    strerror(code),
                    identity->is_running ? "" : ", unless the unit has SupplementaryGroups= that may");
}

/* After a failure: if the user may not enter a directory above, advise that. Returns whether it is so. */
static int
advise_entry(struct doctor *doctor, const struct identity *identity, const char *path)
{
        char directory[PATH_MAX], *way;

        if (!account_find_closed(&identity->account, path, directory))
                return 0;
        way = make_way(doctor, identity, directory, "x");
        doctor_remedy(doctor, "let %s enter the directory: %s", identity->name, way);
        free(way);
        return 1;
}

/* Report that gatepostd does not see what its user can access or not, with this result. */
static void
report_hidden(struct doctor *doctor, const struct identity *identity, int code, const char *remedy)
{
        if (identity->root == NULL && code == 0) {
                doctor_warn(doctor, DOCTOR_SIGHT_HIDDEN ", unless this was changed there: %s", remedy);
                return;
        }
        doctor_fail(doctor, EX_NOPERM, "%s%s", DOCTOR_SIGHT_HIDDEN,
                    identity->root == NULL ? ", unless this was changed there" : "");
        doctor_remedy(doctor, "%s", remedy);
}

/* The daemon may have a capability. A directory that was closed since is not seen by the file. */
static void
report_read_before(struct doctor *doctor, const struct identity *identity, const char *path, int is_hidden)
{
        char closed[PATH_MAX], *way;

        if (is_hidden || !account_find_closed(&identity->account, path, closed)) {
                doctor_pass(doctor, "gatepostd has read it as it is now");
                return;
        }
        way = make_way(doctor, identity, closed, "x");
        doctor_warn(
            doctor,
            "gatepostd has read it as it is now, but cannot read it again, at a reload or its next start: "
            "the daemon's user, %s, may not enter %s; let it enter: %s",
            identity->name, closed, way);
        free(way);
}

/* A directory of certificates must be entered, too. */
static void
check_file(struct doctor *doctor, const struct identity *identity, const char *path)
{
        struct stat st;
        int is_directory = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
        int mode = is_directory ? R_OK | X_OK : R_OK, code = account_try(&identity->account, path, mode);
        int is_hidden = doctor_sight_hides(identity, path);
        char *way;

        doctor_begin(doctor, "files", "%s", path);
        if (code == 0 && !is_hidden) {
                doctor_pass(doctor, "the daemon's user, %s, may read it", identity->name);
                return;
        }
        if (doctor_age_has_read(doctor, identity->status, path)) {
                report_read_before(doctor, identity, path, is_hidden);
                return;
        }
        if (is_hidden) {
                report_hidden(doctor, identity, code, "move it to /etc/gatepost");
                return;
        }
        report_denied(doctor, identity, "read it", code);
        if (advise_restart(doctor, identity, path, mode))
                return;
        if (advise_entry(doctor, identity, path))
                return;
        way = make_way(doctor, identity, path, is_directory ? "rx" : "r");
        doctor_remedy(doctor, "%s", way);
        free(way);
}

/* Whether a directory is missing, or no mount point: its disk may not be mounted. */
static int
may_lack_a_disk(const char *path)
{
        char *above = mem_printf("%s/..", path);
        struct stat status, above_status;
        int result = stat(path, &status) != 0 ||
                     (stat(above, &above_status) == 0 && status.st_dev == above_status.st_dev);

        free(above);
        return result;
}

/*
 * Return what gives a directory to the user, to be freed. It may have deliveries that wait, or be one of the
 * system.
 */
static char *
make_own(const struct identity *identity, const char *path, directory_owns *owns)
{
        const struct directory_contents contents = directory_look(path, owns);
        char *real = realpath(path, NULL), *way;
        struct stat status;

        if (real == NULL && lstat(path, &status) == 0)
                way = mem_printf("create the directory to which this link leads, for %s", identity->name);
        else if (real == NULL)
                way = mem_printf("install -d -o %s -m 0700 %s", identity->name, path);
        else if (contents.has_other)
                way =
                    mem_printf("it has other files, so name a directory of its own%s",
                               contents.has_own ? ", and move there, while gatepostd is stopped, what is its "
                                                  "own in this one"
                                                : "");
        else
                way = mem_printf("chown -R %s %s && chmod 700 %s", identity->name, real, real);
        free(real);
        return way;
}

/* After a failure: say what lets the user write a directory. `on` is it, or without it the one above. */
static void
advise_writing(struct doctor *doctor, const struct identity *identity, const char *path, const char *on,
               int code, directory_owns *owns)
{
        char *way;

        if (advise_restart(doctor, identity, on, W_OK | X_OK) ||
            (code == EACCES && advise_entry(doctor, identity, on)))
                return;
        if (code == EROFS) {
                doctor_remedy(
                    doctor, "if its file system was mounted writable, see in the kernel's log (dmesg) why it "
                            "is read-only now, and then mount it writable again; else name a directory that "
                            "is on another one, and drain a copy of what a spool here has by @GATEPOST@ "
                            "spool drain");
                return;
        }
        way = make_own(identity, path, owns);
        doctor_remedy(doctor, "%s%s%s; %s must be able to enter those above it",
                      may_lack_a_disk(path) ? "if it is on a disk of its own, mount that; else: " : "", way,
                      doctor_sight_is_read_only(identity, path, on)
                          ? ", and name it in ReadWritePaths= of the unit"
                          : "",
                      identity->name);
        free(way);
}

/* Whether the running daemon uses a directory. */
static int
is_in_use(const struct doctor *doctor, const struct identity *identity, const char *path)
{
        const char *spool = json_tree_text(json_tree_get(identity->status, "spool"), "directory");

        if (doctor->config->state != NULL && strcmp(path, doctor->config->state) == 0)
                return json_tree_get(identity->status, "state") != NULL;
        return spool != NULL && strcmp(path, spool) == 0;
}

/* Whether the running daemon has a spool at this path that is not the directory here. */
static int
is_elsewhere(const struct identity *identity, const char *path)
{
        const struct json_value *spool = json_tree_get(identity->status, "spool");
        const char *directory = json_tree_text(spool, "directory");

        return directory != NULL && strcmp(path, directory) == 0 && doctor_spool_is_private(spool);
}

/* Report on a directory that the daemon's user may write: its unit may be in the way. */
static void
report_writable(struct doctor *doctor, const struct identity *identity, const char *path, const char *on)
{
        int is_read_only = doctor_sight_is_read_only(identity, path, on);

        if (doctor_sight_hides(identity, on)) {
                report_hidden(doctor, identity, 0, "name a directory below /var/lib/gatepost");
        } else if (is_read_only && identity->root != NULL) {
                doctor_fail(doctor, EX_NOPERM,
                            "the daemon's user, %s, may write it, but for gatepostd it is read-only, by "
                            "ProtectSystem= of its unit",
                            identity->name);
                doctor_remedy(
                    doctor, "%sname it in ReadWritePaths= of the unit (systemctl edit @UNIT@), and then: %s",
                    on == path ? "" : "create it, owned by the daemon's user, ", doctor_restart(doctor));
        } else {
                doctor_pass(doctor, "the daemon's user, %s, may write it%s", identity->name,
                            is_read_only && !is_in_use(doctor, identity, path)
                                ? ", if ReadWritePaths= of the unit names it"
                                : "");
        }
}

/* The daemon creates a directory that does not exist. */
static void
check_directory(struct doctor *doctor, const struct identity *identity, const char *path,
                directory_owns *owns)
{
        char *copy = mem_strdup(path), *what, file[PATH_MAX], *real;
        struct stat status;
        const char *on = lstat(path, &status) == 0 ? path : dirname(copy); /* also a link to nothing */
        int code = account_try(&identity->account, on, W_OK | X_OK);

        doctor_begin(doctor, "files", "%s", path);
        if (is_elsewhere(identity, path)) {
                doctor_pass(doctor, "it is " DOCTOR_SIGHT_OWN);
        } else if (code == ENOENT && strcmp(on, STATE_DIRECTORY) == 0 && lstat(on, &status) != 0 &&
                   unit_manager_runs()) {
                doctor_pass(doctor, "systemd makes " STATE_DIRECTORY " when gatepostd starts");
        } else if (code == 0 && on == path && directory_find_denied(path, owns, &identity->account, file)) {
                what = mem_printf("open %s, which is in it", file);
                report_denied(doctor, identity, what, EACCES);
                free(what);
                real = realpath(path, NULL); /* chown -R does not follow a link */
                if (lstat(file, &status) == 0 && status.st_uid == identity->account.user)
                        doctor_remedy(doctor, "chmod u+rw %s", file);
                else
                        doctor_remedy(doctor, "chown -R %s %s", identity->name, real == NULL ? path : real);
                free(real);
        } else if (code == 0) {
                report_writable(doctor, identity, path, on);
        } else {
                what = mem_printf("write %s", on == path ? "it" : on);
                report_denied(doctor, identity, what, code);
                free(what);
                advise_writing(doctor, identity, path, on, code, owns);
        }
        free(copy);
}

/* As root: try everything as the daemon's user. */
static void
check_all_as(struct doctor *doctor, const struct identity *identity)
{
        const struct config *config = doctor->config;
        struct problems problems = {.file = doctor->file};
        struct ini ini;

        check_file(doctor, identity, doctor->file);
        if (ini_read_file(doctor->file, &ini, &problems) == 0) {
                for (size_t i = 0; i < ini.n; i++) {
                        if (hidden_paths_is_file(&ini.entries[i], config->roles) &&
                            strcmp(ini.entries[i].section, "service") != 0)
                                check_file(doctor, identity, ini.entries[i].value);
                }
        }
        ini_clear(&ini);
        problems_clear(&problems);
        if (config->spool != NULL && config->roles & CONFIG_RECEIVER)
                check_directory(doctor, identity, config->spool, spool_directory_owns);
        if (config->state != NULL && config->roles & CONFIG_ROUTER)
                check_directory(doctor, identity, config->state, state_directory_owns);
}

/*
 * Find the daemon's user: that of the process, or without one that of the unit. The daemon of another
 * configuration may answer, whose user is not the one of ours. An older daemon does not say its groups.
 * Returns whether the user is known.
 */
static int
find_identity(const struct doctor *doctor, struct identity *identity)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const struct json_value *id;
        const struct passwd *user = NULL;
        int is_known;

        if (doctor_daemon_other(doctor, status) != NULL) {
                json_tree_free(status);
                status = NULL;
        }
        id = json_tree_get(status, "userId");
        is_known = identity_read(identity, status);
        if (!is_known && id != NULL)
                user = getpwuid((uid_t)json_tree_value(id));
        else if (!is_known && strncmp(doctor->file, HOME, strlen(HOME)) == 0)
                user = getpwnam(ACCOUNT_SERVICE_USER);
        if (user != NULL) {
                identity_find(identity, user, user->pw_gid);
                is_known = 1;
        }
        identity->status = status;
        return is_known;
}

/* Reading the configuration has shown which files this user can read. */
void
doctor_check_files(struct doctor *doctor)
{
        struct identity identity;
        int is_known = find_identity(doctor, &identity),
            is_other = is_known && identity.account.user != geteuid();
        int can_try =
            is_other && geteuid() == 0 && account_try(&identity.account, "/", F_OK) != ACCOUNT_CANNOT_TRY;

        doctor_begin(doctor, "files", "%s", "");
        if (can_try) {
                doctor_pass(doctor, "you are root, and the daemon runs as %s", identity.name);
                doctor_sight_find(doctor, &identity);
                check_all_as(doctor, &identity);
        } else if (is_other) {
                doctor_skip(doctor,
                            "this user can read all files that the configuration names; whether the daemon's "
                            "user, %s, can is not verified: run gatepost doctor as root%s",
                            identity.name,
                            geteuid() == 0 ? ", where that may become another user (CAP_SETUID, CAP_SETGID)"
                                           : "");
        } else if (!is_known && geteuid() == 0) {
                doctor_warn(
                    doctor,
                    "root can read all files that the configuration names; whether the daemon's user "
                    "can, and write its directories, is not known: run gatepost doctor as that user, or "
                    "while gatepostd runs");
        } else {
                doctor_pass(doctor, "%s can read all files that the configuration names", user_name());
        }
        identity_clear(&identity);
}
