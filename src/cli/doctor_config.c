#include "cli/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/access_check.h"
#include "http/listen_check.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "spool/spool_place.h"

/* The configuration and its certificate. */

/* config_load_reporting() passes nothing to its callback. */
static struct doctor *loading;

/* Say what to do about a file that may not be read. The message names it: cannot open FILE: REASON. */
static void
advise_on_denied(struct doctor *doctor, const char *message)
{
        const char *path = strchr(message, '/'), *reason = strstr(message, strerror(EACCES));
        char *copy = path == NULL || reason == NULL || reason < path + 2
                         ? NULL
                         : mem_printf("%.*s", (int)(reason - path) - 2, path);

        doctor_files_advise(doctor, copy);
        free(copy);
}

/* Whether a problem is one of the files with the certificate and its key: the configuration may be right. */
static int
is_of_certificate(const struct problem *problem)
{
        static const char *const beginnings[] = {"tls_certificate_file: ", "tls_key_file: "};

        return strncmp(problem->text, beginnings[0], strlen(beginnings[0])) == 0 ||
               strncmp(problem->text, beginnings[1], strlen(beginnings[1])) == 0;
}

/* Warn of what may be why gatepostd does not run. What to do about it follows the last semicolon. */
static void
warn_of_suspect(struct doctor *doctor, const char *text)
{
        struct doctor_report *report = &doctor->report;
        const char *remedy = strrchr(text, ';');

        if (report->n_suspects++ == 0) {
                report->suspect =
                    mem_printf("%s %s: %.*s", report->name, report->subject, (int)(remedy - text), text);
                report->suspect_remedy = mem_strdup(remedy + strlen("; "));
        }
        doctor_warn(doctor, "%s", text);
}

static void
on_problem(const char *file, const struct problem *problem)
{
        if (problem->line == 0)
                doctor_begin(loading, "configuration", "%s", file);
        else
                doctor_begin(loading, "configuration", "%s:%zu", file, problem->line);
        if (problem->is_hidden) {
                warn_of_suspect(loading, problem->text);
        } else if (problem->level == PROBLEM_WARNING) {
                doctor_warn(loading, "%s", problem->text);
        } else if (strstr(problem->text, strerror(EACCES)) != NULL) {
                doctor_fail(loading, EX_NOPERM, "%s", problem->text);
                advise_on_denied(loading, problem->text);
        } else {
                doctor_fail_as(loading, EX_CONFIG, problem->text);
                if (is_of_certificate(problem))
                        doctor_remedy(
                            loading,
                            "see whether %s names the right files; if so, correct the files: the first "
                            "certificate in tls_certificate_file must be that of the key, followed by the "
                            "intermediate certificates, and tls_key_file must be renewed with it; then: "
                            "systemctl reload @UNIT@; until a reload succeeds, a gatepostd that runs serves "
                            "the certificate that it has loaded",
                            file);
                else
                        doctor_remedy(loading, "correct it in %s; @GATEPOST@ check lists all mistakes", file);
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
            spool_place_check(config, on_problem) != 0 || access_check_state(config, on_problem) != 0)
                return;
        doctor_begin(doctor, "configuration", "%s", doctor->file);
        doctor_pass(doctor, "%s, %zu source%s, %zu kinds or patterns", roles_of(config), config->n_sources,
                    config->n_sources == 1 ? "" : "s", topic_table_size(config->topics));
}

static void
check_authorities(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        enum certificate_state state;
        struct error error;

        doctor_begin(doctor, "certificate", "%s", config->tls_client_ca_file);
        state = certificate_authorities_state(config->certificate, clock_now_ms() / 1000, &error);
        if (state == CERTIFICATE_UNUSABLE) {
                doctor_fail(doctor, EX_CONFIG, "no certificate of a client can be valid: %s", error.text);
                doctor_remedy(doctor,
                              "replace tls_client_ca_file in [receiver], then: systemctl reload @UNIT@");
        } else if (state == CERTIFICATE_ENDING) {
                doctor_warn(doctor, "%s", error.text);
        } else {
                doctor_pass(doctor, "the authorities for client certificates are valid");
        }
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
                doctor_remedy(doctor, "replace the files in [receiver], then: systemctl reload @UNIT@");
        } else if (state == CERTIFICATE_ENDING) {
                doctor_warn(doctor, "%s", error.text);
        } else {
                /* Both were compared when the configuration was read. */
                doctor_pass(doctor, "belongs to its key, valid for %d days",
                            (int)certificate_days_left(config->certificate, clock_now_ms() / 1000));
        }
        if (config->tls_client_ca_file != NULL)
                check_authorities(doctor);
}
