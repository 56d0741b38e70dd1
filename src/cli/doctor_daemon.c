#include "cli/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "cli/receiver_url.h"
#include "cli/status_findings.h"
#include "http/answer.h"
#include "model/delivery_check.h"
#include "spool/config_checks.h"

/* The steps about gatepostd: its configuration, its addresses, and what it says of itself. */

#define TIMEOUT_MS 5000
#define ANSWER_MAX (4u << 20)

/* As `check` does. */
void
doctor_check_configuration(struct doctor *doctor)
{
        size_t before = doctor->findings.n;
        struct config *config = config_checks_load(doctor->file, &doctor->findings);

        doctor->config = config;
        if (config != NULL && doctor->findings.n == before)
                doctor_pass(doctor, doctor->file, "it is valid");
}

/* Call gatepostd at one of its addresses, in a way that it does not count as a refusal. */
static int
call(const struct receiver_url *to, struct http_client_answer *answer, struct error *error)
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
                                                    .max_answer = ANSWER_MAX};

        return http_client_call(&request, answer, error);
}

/* Return whether an answer has a code of gatepostd. */
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

/* Report a program other than gatepostd. */
static void
report_stranger(struct doctor *doctor, const char *address, const char *section)
{
        struct finding *finding =
            doctor_fail(doctor, EX_CONFIG, address, NULL, "another program than gatepostd answers there");

        finding_set_remedy(finding, "stop it, or choose another listen in [%s] of %s", section, doctor->file);
}

static void
check_listener(struct doctor *doctor, const char *address, const struct receiver_url *to)
{
        struct http_client_answer answer;
        struct error error;

        if (call(to, &answer, &error) == 0) {
                if (is_of_gatepostd(&answer))
                        doctor_pass(doctor, address, "gatepostd answers");
                else
                        report_stranger(doctor, address, "receiver");
        } else if (answer.failure == HTTP_CLIENT_UNTRUSTED) {
                doctor_fail(doctor, EX_CONFIG, address, doctor->reload,
                            "gatepostd serves another certificate than the file has");
        } else if (!answer.is_connected) {
                doctor_fail(doctor, EX_UNAVAILABLE, address, doctor->start, "nothing listens there");
        } else {
                doctor_fail(doctor, EX_UNAVAILABLE, address, doctor->restart, "no answer: %s", error.text);
        }
        free(answer.body);
}

void
doctor_check_listeners(struct doctor *doctor)
{
        const struct config *config = doctor->config;

        for (size_t i = 0; i < config->n_listen && config->roles & CONFIG_RECEIVER; i++) {
                const struct config_listen *listen = &config->listen[i];
                struct receiver_url to;

                if (config->requires_proxy || config->tls_client_ca_file != NULL) {
                        doctor_skip(doctor, listen->text, "it takes only connections of proxies");
                } else if (receiver_url_own(listen, config->tls_certificate_file, config->sources[0].path,
                                            &to) != 0) {
                        doctor_skip(doctor, listen->text, "only gatepostd knows its port");
                } else {
                        check_listener(doctor, listen->text, &to);
                        free(to.url);
                }
        }
}

/* Ask for /status, and report why it is not known. */
static void
read_status(struct doctor *doctor, const struct receiver_url *to)
{
        const char *address = doctor->config->admin->text;
        struct http_client_answer answer;
        struct error error;

        if (call(to, &answer, &error) != 0) {
                doctor_fail(doctor, EX_UNAVAILABLE, address, doctor->start, "gatepostd does not %s",
                            answer.is_connected ? "answer" : "run: nothing listens there");
                return;
        }
        doctor->status = json_tree_parse(answer.body, answer.len, &error);
        free(answer.body);
        if (json_tree_get(doctor->status, "configuration") != NULL)
                return;
        report_stranger(doctor, address, "admin");
        json_tree_free(doctor->status);
        doctor->status = NULL;
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
                        doctor_pass(doctor, role->name, "it is ready");
                else
                        doctor_fail(doctor, EX_UNAVAILABLE, role->name, "gatepost-guide(7), The daemon",
                                    "not ready: %s", role->text);
        }
}

void
doctor_check_daemon(struct doctor *doctor)
{
        const struct config_listen *admin = doctor->config->admin;
        struct receiver_url to;
        const char *file;

        if (admin == NULL || receiver_url_own(admin, NULL, "/status", &to) != 0) {
                doctor_skip(doctor, "[admin]", "listen is off or has port 0, so gatepostd cannot be asked");
                return;
        }
        read_status(doctor, &to);
        free(to.url);
        if (doctor->status == NULL)
                return;
        file = json_tree_text(json_tree_get(doctor->status, "configuration"), "file");
        if (file != NULL && !is_same_file(file, doctor->config->file))
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, admin->text, NULL,
                                               "the gatepostd there has another configuration, %s", file),
                                   "give %s another listen in [admin], or: gatepost -c %s doctor",
                                   doctor->file, file);
        else
                check_roles(doctor);
}

/* Return the first file that was written after gatepostd had read it, or NULL. */
static const struct config_file *
find_newer(const struct doctor *doctor, const struct json_value *configuration)
{
        double loaded_s = json_tree_number(configuration, "loadedSeconds"),
               started_s = json_tree_number(doctor->status, "startTimeSeconds");
        const struct config *config = doctor->config;

        for (size_t i = 0; i < config->n_files; i++) {
                const struct config_file *file = &config->files[i];

                if ((double)file->st.st_mtim.tv_sec > (file->is_of_kafka ? started_s : loaded_s))
                        return file;
        }
        return NULL;
}

void
doctor_check_loaded(struct doctor *doctor)
{
        const struct json_value *configuration = json_tree_get(doctor->status, "configuration");
        const struct json_value *awaiting = json_tree_get(configuration, "awaitingRestart");
        const char *refused = json_tree_text(json_tree_get(configuration, "refusedReload"), "reason");
        const struct config_file *newer;

        if (configuration == NULL)
                return;
        newer = find_newer(doctor, configuration);
        if (refused != NULL)
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, doctor->file, NULL,
                                               "gatepostd has refused the last reload: %s", refused),
                                   "correct it, then: %s", doctor->reload);
        else if (newer != NULL)
                doctor_fail(doctor, EX_CONFIG, newer->path,
                            newer->is_of_kafka ? doctor->restart : doctor->reload,
                            "it was changed after gatepostd had read it");
        else if (awaiting != NULL && awaiting->type == JSON_ARRAY && awaiting->n > 0)
                finding_set_remedy(findings_add(&doctor->findings, FINDING_WARNING, doctor->file,
                                                "only a restart applies %s", awaiting->first->text),
                                   "%s; after a change of brokers, prefix or spool first gatepost-guide(7), "
                                   "ANOTHER CLUSTER OR PREFIX",
                                   doctor->restart);
        else
                doctor_pass(doctor, doctor->file, "gatepostd has loaded it as it is now");
}

/* `status` prints the same findings. */
void
doctor_check_state(struct doctor *doctor)
{
        size_t before = doctor->findings.n;

        if (doctor->status == NULL)
                return;
        status_findings(doctor->status, &doctor->findings);
        if (doctor->findings.n == before)
                doctor_pass(doctor, NULL, "no trouble in /status");
}
