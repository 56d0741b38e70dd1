#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "config/directory_check.h"
#include "config/ini.h"
#include "http/listen_check.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "spool/spool_place.h"

/* The configuration and the files that it names. */

#define DAEMON_USER "gatepost" /* of the systemd unit */
#define HOME SYSCONFDIR "/gatepost/"

/* config_load_reporting() passes nothing to its callback. */
static struct doctor *loading;

static const char *
user_name(void)
{
        const struct passwd *user = getpwuid(geteuid());

        return user == NULL ? "this user" : user->pw_name;
}

/* Say what to do about a file that may not be read. */
static void
advise_on_denied(struct doctor *doctor)
{
        doctor_remedy(doctor,
                      "run it as a user who may read it, such as the daemon's: sudo -u " DAEMON_USER
                      " gatepost -c %s doctor; if the daemon cannot read it either: chgrp " DAEMON_USER
                      " FILE && chmod 0640 FILE (you are %s)",
                      doctor->file, user_name());
}

static void
on_problem(const char *file, const struct problem *problem)
{
        if (problem->line == 0)
                doctor_begin(loading, "configuration", "%s", file);
        else
                doctor_begin(loading, "configuration", "%s:%zu", file, problem->line);
        if (problem->level == PROBLEM_WARNING) {
                doctor_warn(loading, "%s", problem->text);
        } else if (strstr(problem->text, strerror(EACCES)) != NULL) {
                doctor_fail(loading, EX_NOPERM, "%s", problem->text);
                advise_on_denied(loading);
        } else {
                doctor_fail_as(loading, EX_CONFIG, problem->text);
                doctor_remedy(loading, "correct it in %s; gatepost check lists all mistakes", file);
        }
}

static const char *
roles_of(const struct config *config)
{
        if (config->roles == CONFIG_RECEIVER)
                return "receiver";
        return config->roles == CONFIG_ROUTER ? "router" : "receiver and router";
}

void
doctor_check_configuration(struct doctor *doctor)
{
        const struct config *config;

        loading = doctor;
        doctor->config = config_load_reporting(doctor->file, on_problem);
        config = doctor->config;
        if (config == NULL || tls_check_strength(config, on_problem) != 0 ||
            clients_check(config, on_problem) != 0 || listen_check(config, on_problem) != 0 ||
            spool_place_check(config, on_problem) != 0 || directory_check_state(config, on_problem) != 0)
                return;
        doctor_begin(doctor, "configuration", "%s", doctor->file);
        doctor_pass(doctor, "%s, %zu source%s, %zu kinds or patterns", roles_of(config), config->n_sources,
                    config->n_sources == 1 ? "" : "s", topic_table_size(config->topics));
}

void
doctor_check_certificate(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        enum certificate_state state;
        struct error error;

        if (config->certificate == NULL)
                return;
        doctor_begin(doctor, "certificate", "%s", config->tls_certificate_file);
        state = certificate_state(config->certificate, clock_now_ms() / 1000, &error);
        if (state == CERTIFICATE_UNUSABLE) {
                doctor_fail(doctor, EX_CONFIG, "%s", error.text);
                doctor_remedy(doctor, "replace the files in [receiver], then: systemctl reload gatepostd");
        } else if (state == CERTIFICATE_ENDING) {
                doctor_warn(doctor, "%s", error.text);
        } else {
                /* Both were compared when the configuration was read. */
                doctor_pass(doctor, "belongs to its key, valid for %d days",
                            (int)certificate_days_left(config->certificate, clock_now_ms() / 1000));
        }
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

/* Try to open a file as another user, in a process of its own. Returns 0 or an error number. */
static int
try_as(const struct passwd *user, const char *path)
{
        pid_t child = fork();
        int status;

        if (child == 0) {
                if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
                    setuid(user->pw_uid) != 0)
                        _exit(EPERM);
                _exit(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) < 0 ? errno : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                return 0;
        return WEXITSTATUS(status);
}

static void
check_as(struct doctor *doctor, const struct passwd *user, const char *path)
{
        int code = try_as(user, path);

        doctor_begin(doctor, "files", "%s", path);
        if (code == 0) {
                doctor_pass(doctor, "the daemon's user, %s, may read it", user->pw_name);
                return;
        }
        doctor_fail(doctor, EX_NOPERM, "the daemon's user, %s, cannot read it: %s", user->pw_name,
                    strerror(code));
        doctor_remedy(doctor, "chgrp %s %s && chmod 0640 %s; its directories need the execute permission",
                      user->pw_name, path, path);
}

/* As root: try each file as the daemon's user. */
static void
check_all_as(struct doctor *doctor, const struct passwd *user)
{
        struct problems problems = {.file = doctor->file};
        struct ini ini;

        check_as(doctor, user, doctor->file);
        if (ini_read_file(doctor->file, &ini, &problems) == 0) {
                for (size_t i = 0; i < ini.n; i++) {
                        if (is_file(&ini.entries[i]))
                                check_as(doctor, user, ini.entries[i].value);
                }
        }
        ini_clear(&ini);
        problems_clear(&problems);
}

/* Reading the configuration has shown which files this user can read. */
void
doctor_check_files(struct doctor *doctor)
{
        const struct passwd *daemon_user = getpwnam(DAEMON_USER);
        int is_installed = daemon_user != NULL && strncmp(doctor->file, HOME, strlen(HOME)) == 0;

        doctor_begin(doctor, "files", "%s", "");
        if (!is_installed || geteuid() == daemon_user->pw_uid) {
                doctor_pass(doctor, "%s can read all files that the configuration names", user_name());
                return;
        }
        if (geteuid() != 0) {
                doctor_skip(doctor,
                            "%s can read all files that the configuration names; whether the daemon's "
                            "user, " DAEMON_USER ", can is not verified: run gatepost doctor as root",
                            user_name());
                return;
        }
        doctor_pass(doctor, "you are root, and the daemon runs as " DAEMON_USER);
        check_all_as(doctor, daemon_user);
}
