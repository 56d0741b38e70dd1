#include "cli/doctor_daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/status.h"

#define LIST_SIZE 400

/*
 * Whether the daemon has what the files have now. It says in /status which files it has read, and what
 * stat(2) said of each before. A file that is replaced or written differs in that.
 */

static const struct json_value *
first_in(const struct json_value *status, const char *name)
{
        const struct json_value *list = json_tree_get(json_tree_get(status, "configuration"), name);

        return list == NULL || list->type != JSON_ARRAY ? NULL : list->first;
}

const struct json_value *
doctor_age_first(const struct doctor *doctor, const char *name)
{
        return first_in(doctor->status, name);
}

/*
 * What has become of a file since the daemon has read it. Its status changes with its contents, even if its
 * time is then set to what it was, but also by chmod(1), or when it gets another link.
 */
enum change { UNCHANGED, CHANGED, MAY_HAVE_CHANGED, UNKNOWN };

static enum change
compare_as(const struct json_value *file, const char *path)
{
        struct stat now;

        if (path == NULL || stat(path, &now) != 0)
                return path == NULL || errno == EACCES ? UNKNOWN : CHANGED;
        if (!status_is_number(file, "inode", (int64_t)now.st_ino) ||
            !status_is_number(file, "modifiedSeconds", now.st_mtim.tv_sec) ||
            !status_is_number(file, "modifiedNanoseconds", now.st_mtim.tv_nsec))
                return CHANGED;
        return status_is_number(file, "changedSeconds", now.st_ctim.tv_sec) &&
                       status_is_number(file, "changedNanoseconds", now.st_ctim.tv_nsec)
                   ? UNCHANGED
                   : MAY_HAVE_CHANGED;
}

/* Compare a file that the daemon has read. The first is the configuration, which this command has, too. */
static enum change
compare(const struct doctor *doctor, const struct json_value *file)
{
        return compare_as(file, file == doctor_age_first(doctor, "files") ? doctor->file
                                                                          : json_tree_text(file, "path"));
}

int
doctor_age_has_read(const struct doctor *doctor, const struct json_value *status, const char *path)
{
        const struct json_value *first = first_in(status, "files");

        for (const struct json_value *file = first; file != NULL; file = file->next) {
                const char *its = file == first ? doctor->file : json_tree_text(file, "path");

                if (its != NULL && strcmp(its, path) == 0 && compare_as(file, path) == UNCHANGED)
                        return 1;
        }
        return 0;
}

/* Return the path of the first file with this change, of those read at the start or a reload, or NULL. */
static const char *
find(const struct doctor *doctor, const char *read_at, enum change change)
{
        for (const struct json_value *file = doctor_age_first(doctor, "files"); file != NULL;
             file = file->next) {
                const char *when = json_tree_text(file, "readAt"), *path = json_tree_text(file, "path");

                if (when != NULL && path != NULL && strcmp(when, read_at) == 0 &&
                    compare(doctor, file) == change)
                        return path;
        }
        return NULL;
}

/* Whether the daemon has loaded another file than this command. */
static int
has_other_file(const struct doctor *doctor)
{
        const struct json_value *file = doctor_age_first(doctor, "files");
        const char *path = json_tree_text(file, "path");
        struct stat theirs, ours;

        return path != NULL && compare(doctor, file) == CHANGED && stat(path, &theirs) == 0 &&
               stat(doctor->file, &ours) == 0 &&
               (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino);
}

/* Write the options that the daemon has read and that only a restart applies. Returns whether any are. */
static int
list_awaiting(const struct doctor *doctor, char *text, size_t size)
{
        text[0] = '\0';
        for (const struct json_value *each = doctor_age_first(doctor, "awaitingRestart"); each != NULL;
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
        const char *of_kafka = find(doctor, "start", CHANGED);
        char options[LIST_SIZE];

        if (list_awaiting(doctor, options, sizeof(options)) && strstr(options, "[kafka]") != NULL)
                return "since its start it has only read the present one";
        if (of_kafka != NULL)
                (void)snprintf(text, sizeof(text), "%s has changed since its start", of_kafka);
        else if (doctor_age_first(doctor, "files") != NULL &&
                 compare(doctor, doctor_age_first(doctor, "files")) == CHANGED)
                (void)snprintf(text, sizeof(text), "it has not loaded %s as it is now", doctor->file);
        else
                return NULL;
        return text;
}

/*
 * Whether the daemon has loaded its configuration after a file has changed. A link may have been changed
 * since, though.
 */
static int
was_loaded_since(const struct doctor *doctor, const char *path)
{
        struct stat now;

        return stat(path, &now) == 0 && status_number(json_tree_get(doctor->status, "configuration"),
                                                      "loadedSeconds") > (double)now.st_ctim.tv_sec;
}

/*
 * Return the refusal of the last reload, unless the configuration is not the refused one any more, or this
 * file has changed since it, or is NULL; or NULL.
 */
static const struct json_value *
refusal_of(const struct doctor *doctor, const char *path)
{
        const struct json_value *refused =
            json_tree_get(json_tree_get(doctor->status, "configuration"), "refusedReload");
        struct stat now;

        if (path == NULL || json_tree_text(refused, "reason") == NULL ||
            compare_as(refused, doctor->file) != UNCHANGED ||
            (stat(path, &now) == 0 && status_number(refused, "timeSeconds") < (double)now.st_ctim.tv_sec))
                return NULL;
        return refused;
}

const char *
doctor_age_reload(const struct doctor *doctor)
{
        return refusal_of(doctor, find(doctor, "reload", CHANGED)) == NULL
                   ? "systemctl reload @UNIT@"
                   : "its last reload was refused, see `daemon configuration` above for what to do";
}

/* Return when to apply what the last reload has refused. This command has loaded the files, too. */
static const char *
when_to_apply(const struct json_value *refused)
{
        if (status_flag(refused, "needsRestart"))
                return "only a restart applies it";
        if (!status_flag(refused, "hasErrors"))
                return "when that is corrected";
        return "this command finds no such error: unless it was corrected since, gatepostd's process sees "
               "other files, or lacks a group, which only a restart gives it: the `files` lines of gatepost "
               "doctor as root tell which, or see journalctl -u @UNIT@; when that is corrected";
}

/*
 * Report that the last reload was refused, and a file of [kafka] that has changed, for which a restart may
 * then fail, too, or, if there is none, a file that the daemon has not loaded as it is now.
 */
static void
report_refused(struct doctor *doctor, const char *changed, const char *of_kafka,
               const struct json_value *refused)
{
        const char *reason = json_tree_text(refused, "reason"), *when = when_to_apply(refused);

        if (of_kafka != NULL)
                doctor_warn(doctor,
                            "%s has changed since the start of gatepostd, and changes in [kafka] need a "
                            "restart, but the last reload was refused: %s; %s: %s",
                            of_kafka, reason, when, doctor_restart(doctor));
        else
                doctor_warn(doctor,
                            "gatepostd has not loaded %s as it is now: the last reload was refused: %s; %s: "
                            "%s",
                            changed, reason, when,
                            status_flag(refused, "needsRestart") ? doctor_restart(doctor)
                                                                 : "systemctl reload @UNIT@");
}

/* Return how to let a container see the files of the host as they are now. */
static const char *
replace_container(struct doctor *doctor)
{
        return doctor_restart_as(doctor,
                                 doctor->config->spool == NULL
                                     ? "create the container anew"
                                     : "create the container anew, but unless `spool` is on a volume, only "
                                       "when @GATEPOST@ status shows that it is empty");
}

/*
 * Report a file that has no name any more, although it has a path here: it is mounted alone, and was then
 * replaced where it comes from. The daemon reads the old one at each reload, if it is in the same container.
 * Returns whether there is one.
 */
static int
report_replaced(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        size_t i = 0;

        while (i < config->n_files && config->files[i].st.st_nlink != 0)
                i++;
        if (i == config->n_files)
                return 0;
        doctor_warn(
            doctor,
            "%s was replaced or deleted outside of this mount, and only the old file is seen here, "
            "also after a reload: its link count is 0, as in a container with a bind mount of this "
            "file alone; mount its directory instead, or each time: %s%s",
            config->files[i].path, replace_container(doctor),
            i > 0 ? ""
                  : "; if the new one has another `prefix`, `bootstrap.servers` or `spool`, which is not "
                    "seen here, read gatepost-guide(7), ANOTHER CLUSTER OR PREFIX, before");
        return 1;
}

static void
report_other_file(struct doctor *doctor, const char *other)
{
        char *text = doctor_daemon_explain(doctor, other);

        doctor_warn(doctor, "%s", text);
        free(text);
}

/* Report which file the daemon has not read as it is now. Returns whether there is one. */
static int
report_changed(struct doctor *doctor)
{
        const char *of_kafka = find(doctor, "start", CHANGED), *changed = find(doctor, "reload", CHANGED);
        const struct json_value *refused = refusal_of(doctor, changed == NULL ? of_kafka : changed);

        doctor->is_daemon_outdated = changed != NULL;
        if (changed != NULL && has_other_file(doctor))
                report_other_file(doctor, changed);
        else if (refused != NULL)
                report_refused(doctor, changed, of_kafka, refused);
        else if (of_kafka != NULL)
                doctor_warn(doctor,
                            "%s has changed since the start of gatepostd, and changes in [kafka] need a "
                            "restart: %s",
                            of_kafka, doctor_restart(doctor));
        else if (changed != NULL && was_loaded_since(doctor, changed))
                doctor_warn(
                    doctor,
                    "gatepostd has not loaded %s as it is now: systemctl reload @UNIT@%s; if this stays "
                    "after a reload, gatepostd sees another file at that path, as in a container with "
                    "a bind mount of this file alone, which keeps the old one: %s; or it has refused "
                    "the file: see its log",
                    changed, doctor_sources_caution(doctor), replace_container(doctor));
        else if (changed != NULL)
                doctor_warn(doctor, "gatepostd has not loaded %s as it is now: systemctl reload @UNIT@%s",
                            changed, doctor_sources_caution(doctor));
        return of_kafka != NULL || changed != NULL;
}

static void
check_files(struct doctor *doctor)
{
        const char *unknown = find(doctor, "reload", UNKNOWN);
        const char *of_kafka = find(doctor, "start", MAY_HAVE_CHANGED),
                   *loaded = find(doctor, "reload", MAY_HAVE_CHANGED);
        char options[LIST_SIZE];

        if (unknown == NULL)
                unknown = find(doctor, "start", UNKNOWN);
        if (report_replaced(doctor) || report_changed(doctor))
                return;
        if (list_awaiting(doctor, options, sizeof(options)))
                doctor_warn(doctor, "gatepostd has read options that only a restart applies, %s: %s", options,
                            doctor_restart(doctor));
        else if (doctor_age_first(doctor, "files") == NULL)
                doctor_skip(doctor, "gatepostd does not say which files it has loaded; another version does");
        else if (unknown != NULL)
                doctor_skip(doctor,
                            "whether gatepostd has loaded %s as it is now is not verified: this user may not "
                            "see it; run gatepost doctor as root",
                            unknown);
        else if (of_kafka != NULL || loaded != NULL)
                doctor_skip(
                    doctor,
                    "%s may have changed: its status changed after gatepostd had read it, as by chmod "
                    "or by a change that keeps the time of the file; if it has another content: "
                    "%s",
                    of_kafka != NULL ? of_kafka : loaded,
                    of_kafka != NULL ? doctor_restart(doctor) : "systemctl reload @UNIT@");
        else
                doctor_pass(doctor, "gatepostd has loaded the newest files");
}

void
doctor_age_check(struct doctor *doctor)
{
        const char *version = json_tree_text(json_tree_get(doctor->status, "versions"), "gatepostd");

        doctor_begin(doctor, "daemon", "configuration");
        check_files(doctor);
        if (version == NULL || strcmp(version, PACKAGE_VERSION) == 0)
                return;
        doctor_begin(doctor, "daemon", "version");
        doctor_warn(doctor, "gatepostd is version %s, this command %s: %s", version, PACKAGE_VERSION,
                    doctor_restart(doctor));
}
