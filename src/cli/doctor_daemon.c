#include "cli/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/mem.h"
#include "cli/own_url.h"
#include "cli/status_findings.h"
#include "http/answer.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "model/delivery_check.h"
#include "spool/spool_place.h"

/* The steps about gatepostd: its configuration, its addresses, and what it says of itself. */

#define TIMEOUT_MS 5000
#define ANSWER_MAX 65536
#define STATUS_MAX (4u << 20)

static struct doctor *checked; /* config_load_reporting() passes nothing to its callback */

static void
on_problem(const char *file, const struct problem *problem)
{
        struct finding *finding = problem->level == PROBLEM_ERROR
                                      ? doctor_fail(checked, EX_CONFIG, file, "%s", problem->text)
                                      : doctor_note(checked, FINDING_WARNING, file, "%s", problem->text);

        finding->line = problem->line;
        finding_set_remedy(finding, "correct it, then: %s check", checked->command);
}

/* As `check` does. */
void
doctor_check_configuration(struct doctor *doctor)
{
        struct config *config;
        int status;

        checked = doctor;
        config = doctor->config = config_load_reporting(doctor->file, on_problem);
        if (config == NULL)
                return;
        status = tls_check_strength(config, on_problem) | tls_check_dates(config, on_problem) |
                 clients_check(config, on_problem) | spool_place_check(config, on_problem);
        if (status == 0)
                doctor_note(doctor, FINDING_PASSED, doctor->file, "%zu source%s", config->n_sources,
                            config->n_sources == 1 ? "" : "s");
}

/* Call gatepostd at one of its addresses, so that it does not count this as a refusal. */
static int
call(const struct own_url *to, size_t max_answer, struct http_client_answer *answer, struct error *error)
{
        static const char *const headers[] = {"User-Agent: " DELIVERY_PROBE_AGENT};
        const struct http_client_request request = {.method = "GET",
                                                    .url = to->url,
                                                    .socket_path = to->socket_path,
                                                    .ca_file = to->ca_file,
                                                    .allows_any_name = 1,
                                                    .headers = headers,
                                                    .n_headers = 1,
                                                    .timeout_ms = TIMEOUT_MS,
                                                    .max_answer = max_answer};

        return http_client_call(&request, answer, error);
}

/* Return whether gatepostd has given an answer, which has one of its codes. */
static int
is_of_gatepostd(const struct http_client_answer *answer)
{
        struct error ignored;
        struct json_value *body = json_tree_parse(answer->body, answer->len, &ignored);
        const char *code = json_tree_text(json_tree_get(body, "error"), "code");
        int result = code != NULL && answer_has_code(answer->status, code);

        json_tree_free(body);
        return result;
}

static void
report_listener(struct doctor *doctor, const struct config_listen *listen,
                const struct http_client_answer *answer, const struct error *error)
{
        const char *name = listen->text;

        if (error == NULL)
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, name,
                                               "another program answers there, with %d", answer->status),
                                   "stop it, or choose another listen in [receiver] of %s", doctor->file);
        else if (answer->failure == HTTP_CLIENT_UNTRUSTED)
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, name,
                                               "gatepostd serves another certificate than the file has: %s",
                                               error->text),
                                   "systemctl reload %s", doctor->unit);
        else if (!answer->is_connected)
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, name, "nothing listens there: %s",
                                               error->text),
                                   "systemctl start %s; if it does not stay: journalctl -u %s", doctor->unit,
                                   doctor->unit);
        else
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, name, "no answer of gatepostd: %s",
                                               error->text),
                                   "systemctl restart %s", doctor->unit);
}

static void
check_listener(struct doctor *doctor, const struct config_listen *listen)
{
        const struct config *config = doctor->config;
        struct http_client_answer answer;
        struct own_url to;
        struct error error;

        if (own_url_make(listen, config->tls_certificate_file, config->sources[0].path, &to) != 0) {
                doctor_note(doctor, FINDING_SKIPPED, listen->text, "only gatepostd knows its port");
                return;
        }
        if (call(&to, ANSWER_MAX, &answer, &error) != 0)
                report_listener(doctor, listen, &answer, &error);
        else if (!is_of_gatepostd(&answer))
                report_listener(doctor, listen, &answer, NULL);
        else
                doctor_note(doctor, FINDING_PASSED, listen->text, "gatepostd answers");
        free(answer.body);
        free(to.url);
}

void
doctor_check_listeners(struct doctor *doctor)
{
        const struct config *config = doctor->config;

        for (size_t i = 0; i < config->n_listen && config->roles & CONFIG_RECEIVER; i++) {
                if (config->requires_proxy || config->tls_client_ca_file != NULL)
                        doctor_note(doctor, FINDING_SKIPPED, config->listen[i].text,
                                    "it takes only connections of %s",
                                    config->requires_proxy ? "proxies" : "clients with a certificate");
                else
                        check_listener(doctor, &config->listen[i]);
        }
}

/* Ask for /status. Returns 0, or -1 after adding why it is not known. */
static int
read_status(struct doctor *doctor)
{
        const struct config_listen *admin = doctor->config->admin;
        struct http_client_answer answer = {0};
        struct own_url to;
        struct error error;
        int result;

        if (admin == NULL || own_url_make(admin, NULL, "/status", &to) != 0) {
                doctor_note(doctor, FINDING_SKIPPED, "[admin]", "listen %s, so gatepostd cannot be asked",
                            admin == NULL ? "is off" : "has port 0");
                return -1;
        }
        result = call(&to, STATUS_MAX, &answer, &error);
        if (result == 0)
                doctor->status = json_tree_parse(answer.body, answer.len, &error);
        if (result != 0)
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, admin->text,
                                               "gatepostd does not answer: %s", error.text),
                                   "systemctl start %s; if it does not stay: journalctl -u %s", doctor->unit,
                                   doctor->unit);
        else if (json_tree_get(doctor->status, "configuration") == NULL)
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, admin->text,
                                               "another program answers there, with %d", answer.status),
                                   "stop it, or choose another listen in [admin] of %s", doctor->file);
        free(answer.body);
        free(to.url);
        return json_tree_get(doctor->status, "configuration") == NULL ? -1 : 0;
}

/* Return whether two paths are of one file. */
static int
is_same_file(const char *a, const char *b)
{
        struct stat one, other;

        return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 &&
                                     one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}

/* The reasons are those of /readyz. */
static void
check_roles(struct doctor *doctor)
{
        const struct json_value *roles = json_tree_get(doctor->status, "roles");

        for (const struct json_value *role = roles == NULL ? NULL : roles->first; role != NULL;
             role = role->next) {
                if (role->type != JSON_STRING || strcmp(role->text, "ready") == 0)
                        doctor_note(doctor, FINDING_PASSED, role->name, "it is ready");
                else
                        finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, role->name, "not ready: %s",
                                                       role->text),
                                           "gatepost-guide(7), TROUBLESHOOTING");
        }
}

void
doctor_check_daemon(struct doctor *doctor)
{
        const char *file;

        if (read_status(doctor) != 0)
                return;
        file = json_tree_text(json_tree_get(doctor->status, "configuration"), "file");
        if (file != NULL && !is_same_file(file, doctor->config->file)) {
                finding_set_remedy(
                    doctor_fail(doctor, EX_CONFIG, doctor->config->admin->text,
                                "the gatepostd there has another configuration, %s", file),
                    "give %s another listen in [admin], or check the other: gatepost -c %s doctor",
                    doctor->file, file);
                return;
        }
        check_roles(doctor);
}

/* Check that no file was written since gatepostd read it. Returns whether one was. */
static int
check_age(struct doctor *doctor, const struct json_value *configuration)
{
        double loaded_s = json_tree_number(configuration, "loadedSeconds"),
               started_s = json_tree_number(doctor->status, "startTimeSeconds");
        const struct config *config = doctor->config;

        for (size_t i = 0; i < config->n_files; i++) {
                const struct config_file *file = &config->files[i];

                if ((double)file->st.st_mtim.tv_sec <= (file->is_of_kafka ? started_s : loaded_s))
                        continue;
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, file->path,
                                               "it was changed after gatepostd had read it"),
                                   "systemctl %s %s", file->is_of_kafka ? "restart" : "reload", doctor->unit);
                return 1;
        }
        return 0;
}

static void
report_refused(struct doctor *doctor, const struct json_value *refused)
{
        const char *reason = json_tree_text(refused, "reason");

        finding_set_remedy(doctor_fail(doctor, EX_CONFIG, doctor->file,
                                       "gatepostd has refused the last reload: %s",
                                       reason == NULL ? "" : reason),
                           "correct it, then: systemctl reload %s", doctor->unit);
}

/* Return whether an option after which deliveries may be left behind awaits a restart. */
static int
may_leave_deliveries(const struct json_value *awaiting)
{
        for (const struct json_value *each = awaiting->first; each != NULL; each = each->next) {
                if (each->type == JSON_STRING && (strcmp(each->text, "[topics] prefix") == 0 ||
                                                  strcmp(each->text, "[receiver] spool") == 0 ||
                                                  strcmp(each->text, "[kafka] bootstrap.servers") == 0))
                        return 1;
        }
        return 0;
}

static void
report_awaiting(struct doctor *doctor, const struct json_value *awaiting)
{
        struct finding *finding =
            doctor_note(doctor, FINDING_WARNING, doctor->file, "only a restart applies %s%s",
                        awaiting->first->text, awaiting->n > 1 ? " and others" : "");

        if (may_leave_deliveries(awaiting))
                finding_set_remedy(finding, "gatepost-guide(7), ANOTHER CLUSTER OR PREFIX");
        else
                finding_set_remedy(finding, "systemctl restart %s", doctor->unit);
}

void
doctor_check_loaded(struct doctor *doctor)
{
        const struct json_value *configuration = json_tree_get(doctor->status, "configuration");
        const struct json_value *refused = json_tree_get(configuration, "refusedReload");
        const struct json_value *awaiting = json_tree_get(configuration, "awaitingRestart");

        if (configuration == NULL)
                return;
        if (refused != NULL && refused->type == JSON_OBJECT)
                report_refused(doctor, refused);
        else if (check_age(doctor, configuration))
                return;
        else if (awaiting != NULL && awaiting->type == JSON_ARRAY && awaiting->n > 0)
                report_awaiting(doctor, awaiting);
        else
                doctor_note(doctor, FINDING_PASSED, doctor->file, "gatepostd has loaded it as it is now");
}

void
doctor_check_state(struct doctor *doctor)
{
        size_t before = doctor->findings.n;

        if (doctor->status == NULL)
                return;
        status_findings(doctor->status, &doctor->findings);
        if (doctor->findings.n == before)
                doctor_note(doctor, FINDING_PASSED, NULL, "no trouble in /status");
}
