#include "cli/doctor_daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/status.h"

#define LIST_SIZE 400

/*
 * Whether the daemon has what the files have now. It says in /status which files it has read, and what
 * stat(2) said of each before. A file that is replaced or written differs in that, whatever its time.
 */

static const struct json_value *
first_of(const struct doctor *doctor, const char *name)
{
        const struct json_value *list = json_tree_get(json_tree_get(doctor->status, "configuration"), name);

        return list == NULL || list->type != JSON_ARRAY ? NULL : list->first;
}

/* Numbers are compared as they are written, since some file systems have inodes of 64 bits. */
static int
has_number(const struct json_value *object, const char *name, intmax_t number)
{
        const struct json_value *value = json_tree_get(object, name);
        char literal[32];

        (void)snprintf(literal, sizeof(literal), "%" PRIdMAX, number);
        return value != NULL && value->type == JSON_NUMBER && strcmp(value->text, literal) == 0;
}

static int
is_as_read(const struct json_value *file, const struct stat *now)
{
        return has_number(file, "inode", (int64_t)now->st_ino) &&
               has_number(file, "modifiedSeconds", now->st_mtim.tv_sec) &&
               has_number(file, "modifiedNanoseconds", now->st_mtim.tv_nsec);
}

/* What has become of a file since the daemon has read it. */
enum change { UNCHANGED, CHANGED, UNKNOWN };

/* Compare a file that the daemon has read. The first is the configuration, which this command has, too. */
static enum change
compare(const struct doctor *doctor, const struct json_value *file)
{
        const char *path = file == first_of(doctor, "files") ? doctor->file : json_tree_text(file, "path");
        struct stat now;

        if (path != NULL && stat(path, &now) == 0)
                return is_as_read(file, &now) ? UNCHANGED : CHANGED;
        return path == NULL || errno == EACCES ? UNKNOWN : CHANGED;
}

/* Return the path of the first file with this change, of those read at the start or a reload, or NULL. */
static const char *
find(const struct doctor *doctor, const char *read_at, enum change change)
{
        for (const struct json_value *file = first_of(doctor, "files"); file != NULL; file = file->next) {
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
        const struct json_value *file = first_of(doctor, "files");
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
        for (const struct json_value *each = first_of(doctor, "awaitingRestart"); each != NULL;
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
        else if (first_of(doctor, "files") != NULL && compare(doctor, first_of(doctor, "files")) == CHANGED)
                (void)snprintf(text, sizeof(text), "it has not loaded %s as it is now", doctor->file);
        else
                return NULL;
        return text;
}

/* Report which file the daemon has not read as it is now. Returns whether there is one. */
static int
report_changed(struct doctor *doctor)
{
        const char *of_kafka = find(doctor, "start", CHANGED), *changed = find(doctor, "reload", CHANGED);

        doctor->is_daemon_outdated = changed != NULL;
        if (changed != NULL && has_other_file(doctor))
                doctor_warn(doctor,
                            "gatepostd has loaded %s, not %s: examine that one, gatepost -c %s doctor, or "
                            "restart gatepostd with this one",
                            changed, doctor->file, changed);
        else if (of_kafka != NULL)
                doctor_warn(doctor,
                            "%s has changed since the start of gatepostd, and changes in [kafka] need a "
                            "restart: systemctl restart gatepostd",
                            of_kafka);
        else if (changed != NULL)
                doctor_warn(doctor, "gatepostd has not loaded %s as it is now: systemctl reload gatepostd",
                            changed);
        return of_kafka != NULL || changed != NULL;
}

static void
check_files(struct doctor *doctor)
{
        const char *unknown = find(doctor, "reload", UNKNOWN);
        char options[LIST_SIZE];

        if (unknown == NULL)
                unknown = find(doctor, "start", UNKNOWN);
        if (report_changed(doctor))
                return;
        if (list_awaiting(doctor, options, sizeof(options)))
                doctor_warn(doctor,
                            "gatepostd has read options that only a restart applies, %s: systemctl restart "
                            "gatepostd",
                            options);
        else if (first_of(doctor, "files") == NULL)
                doctor_skip(doctor, "gatepostd does not say which files it has loaded; another version does");
        else if (unknown != NULL)
                doctor_skip(doctor,
                            "whether gatepostd has loaded %s as it is now is not verified: this user may not "
                            "see it; run gatepost doctor as root",
                            unknown);
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
        doctor_warn(doctor, "gatepostd is version %s, this command %s: systemctl restart gatepostd", version,
                    PACKAGE_VERSION);
}
