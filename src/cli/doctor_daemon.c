#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/own_url.h"
#include "cli/status.h"

/* The daemon, by its admin endpoint. */

#define TIMEOUT_MS 5000
#define ANSWER_MAX (4u << 20)
#define LOADED "\ngatepost_config_last_reload_success_timestamp_seconds "

int
doctor_daemon_get(const struct doctor *doctor, const char *path, struct http_client_answer *answer,
                  struct error *error)
{
        struct http_client_request request = {.method = "GET",
                                              .timeout_ms = TIMEOUT_MS,
                                              .max_answer = ANSWER_MAX};
        struct own_url own;
        int result;

        if (own_url_make(doctor->config->admin, NULL, path, &own) != 0)
                return error_set(error, "only gatepostd knows its port");
        request.url = own.url;
        request.socket_path = own.socket_path;
        result = http_client_call(&request, answer, error);
        free(own.url);
        return result;
}

struct json_value *
doctor_daemon_status(const struct doctor *doctor)
{
        struct http_client_answer answer;
        struct json_value *status;
        struct error error;

        if (doctor->config->admin == NULL || doctor_daemon_get(doctor, "/status", &answer, &error) != 0)
                return NULL;
        status = json_tree_parse(answer.body, answer.len, &error);
        free(answer.body);
        return status;
}

/* Return when the daemon loaded its configuration, in seconds since the epoch; 0: unknown. */
static int64_t
loaded_s(const struct doctor *doctor)
{
        struct http_client_answer answer;
        struct error error;
        const char *line;
        int64_t when_s = 0;

        if (doctor_daemon_get(doctor, "/metrics", &answer, &error) != 0)
                return 0;
        line = strstr(answer.body, LOADED);
        if (line != NULL)
                when_s = strtoll(line + strlen(LOADED), NULL, 10);
        free(answer.body);
        return when_s;
}

/* Return a file, the configuration or one with a secret, that is newer than what the daemon has, or NULL. */
static const char *
find_newer(const struct config *config, int64_t when_s)
{
        struct stat st;

        if (when_s == 0)
                return NULL;
        if (stat(config->file, &st) == 0 && st.st_mtime > when_s)
                return config->file;
        for (size_t s = 0; s < config->n_sources; s++) {
                for (size_t i = 0; i < config->sources[s].n_secret_files; i++) {
                        if (config->sources[s].secret_files[i].written_s > when_s)
                                return config->sources[s].secret_files[i].path;
                }
        }
        return NULL;
}

static void
check_age(struct doctor *doctor)
{
        const char *version = json_tree_text(json_tree_get(doctor->status, "versions"), "gatepostd");
        const char *newer = find_newer(doctor->config, loaded_s(doctor));

        doctor_begin(doctor, "daemon", "configuration");
        doctor->is_daemon_outdated = newer != NULL;
        if (newer != NULL)
                doctor_warn(doctor, "%s is newer than what gatepostd has loaded: systemctl reload gatepostd",
                            newer);
        else
                doctor_pass(doctor, "gatepostd has loaded the newest files");
        if (version == NULL || strcmp(version, PACKAGE_VERSION) == 0)
                return;
        doctor_begin(doctor, "daemon", "version");
        doctor_warn(doctor, "gatepostd is version %s, this command %s: systemctl restart gatepostd", version,
                    PACKAGE_VERSION);
}

/* Write the lines of an answer as one. */
static void
join_lines(const char *lines, char *text, size_t size)
{
        size_t len = 0;

        text[0] = '\0';
        while (*lines != '\0' && len + 1 < size) {
                size_t n = strcspn(lines, "\n");

                (void)snprintf(text + len, size - len, "%s%.*s", len == 0 ? "" : "; ", (int)n, lines);
                len = strlen(text);
                lines += n + (lines[n] == '\n');
        }
}

/* Check that something listens. Returns whether it does. */
static int
check_connection(struct doctor *doctor)
{
        struct dial dial = {.fd = -1};
        struct own_address address;
        enum dial_failure failure;
        struct error error;
        int result;

        doctor_begin(doctor, "daemon", "%s", doctor->config->admin->text);
        if (own_url_address(doctor->config->admin, &address) != 0) {
                doctor_skip(doctor, "port 0: only gatepostd knows which port it has got");
                return 0;
        }
        result = dial_connect(&dial, &address.info, TIMEOUT_MS, &failure, &error);
        dial_close(&dial);
        if (result == 0)
                doctor_pass(doctor, "connected");
        else
                doctor_listener_report(doctor, failure, &error);
        return result == 0;
}

/* Check /healthz or /readyz. Returns whether it is 200. */
static int
check_path(struct doctor *doctor, const char *path, const char *what)
{
        struct http_client_answer answer;
        struct error error;
        char reasons[600];

        doctor_begin(doctor, "daemon", "%s", path);
        if (doctor_daemon_get(doctor, path, &answer, &error) != 0) {
                doctor_fail(doctor, EX_UNAVAILABLE, "gatepostd does not answer on %s: %s",
                            doctor->config->admin->text, error.text);
                doctor_remedy(doctor,
                              "start it: systemctl start gatepostd; if it does not start: journalctl -u "
                              "gatepostd");
                return 0;
        }
        join_lines(answer.body, reasons, sizeof(reasons));
        if (answer.status == 200) {
                doctor_pass(doctor, "%s", what);
        } else if (answer.status == 503) {
                doctor_fail(doctor, EX_UNAVAILABLE, "not %s: %s", what, reasons);
                doctor_remedy(doctor,
                              "the reason is above; the log has more: journalctl -u gatepostd. While a "
                              "router restores, wait");
        } else {
                doctor_fail(doctor, EX_UNAVAILABLE,
                            "another program than gatepostd answers on %s, with status %d",
                            doctor->config->admin->text, answer.status);
                doctor_remedy(doctor, "find it (ss -ltnp) and stop it, or change `listen` in [admin] of %s",
                              doctor->file);
        }
        free(answer.body);
        return answer.status == 200;
}

void
doctor_check_daemon(struct doctor *doctor)
{
        if (doctor->config->admin == NULL) {
                doctor_begin(doctor, "daemon", "%s", "");
                doctor_skip(doctor, "[admin] listen is off, so gatepostd cannot be asked");
                return;
        }
        if (!check_connection(doctor))
                return;
        if (!check_path(doctor, "/healthz", "alive"))
                return;
        doctor->status = doctor_daemon_status(doctor);
        check_age(doctor);
        (void)check_path(doctor, "/readyz", "ready");
}
