#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/own_url.h"
#include "cli/status.h"
#include "cli/terminal.h"

/* The daemon, by its admin endpoint. */

#define TIMEOUT_MS 5000
#define ANSWER_MAX (4u << 20)
/* How long a daemon may take after its start, as to join its group. */
#define START_S 10
#define START_PAUSE_MS 200
#define RESTART "systemctl restart @UNIT@ (changes in [kafka] need a restart)"

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

const char *
doctor_kafka_trouble(const struct doctor *doctor)
{
        return json_tree_text(doctor->status, "kafkaProblem");
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
                doctor_socket_report(doctor, doctor->config->admin, failure, &error);
        return result == 0;
}

/*
 * The daemon does not reach Kafka, but this command does, with the same options: the daemon has others, as
 * long as it runs, or has not noticed yet that Kafka is back.
 */
static void
report_kafka(struct doctor *doctor)
{
        const char *why = doctor_age_kafka(doctor);

        if (why != NULL) {
                doctor_fail(doctor, EX_UNAVAILABLE,
                            "gatepostd does not reach Kafka (%s), but this machine does with the present "
                            "configuration: it uses an earlier one; %s",
                            doctor_kafka_trouble(doctor), why);
                doctor_remedy(doctor, "%s", doctor_restart_as(doctor, RESTART));
                return;
        }
        doctor_fail(doctor, EX_UNAVAILABLE,
                    "gatepostd does not reach Kafka (%s), but this machine does with the present "
                    "configuration: it uses an earlier one, or Kafka has only just come back",
                    doctor_kafka_trouble(doctor));
        doctor_remedy(doctor, "unless another gatepost doctor finds it ready in a minute: %s",
                      doctor_restart_as(doctor, RESTART));
}

/* A daemon answers 503: report why. */
static void
report_unready(struct doctor *doctor, const char *what, const char *reasons)
{
        const char *instance = doctor->config->instance;

        if (strstr(reasons, rd_kafka_err2str(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)) != NULL) {
                doctor_fail(
                    doctor, EX_CONFIG,
                    "not %s: another router has the same `instance`, %s, and each takes the partitions "
                    "from the other: %s",
                    what, instance, reasons);
                doctor_remedy(doctor,
                              "give each router its own `instance` in [gatepost], and restart those that had "
                              "%s; here: %s",
                              instance, doctor_restart(doctor));
                return;
        }
        if (strstr(reasons, rd_kafka_err2str(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP)) != NULL) {
                doctor_fail(doctor, EX_OSERR,
                            "not %s: Kafka refuses the time of what the router publishes: the clock of this "
                            "machine is more than an hour ahead of the brokers', or than "
                            "message.timestamp.after.max.ms allows: %s",
                            what, reasons);
                doctor_remedy(doctor,
                              "compare the clocks of this machine and of the brokers, by timedatectl on "
                              "each; set the wrong one, and restart what runs there");
                return;
        }
        doctor_fail(doctor, EX_UNAVAILABLE, "not %s: %s", what, reasons);
        doctor_remedy(doctor, "the reason is above; the log has more: journalctl -u @UNIT@. While a router "
                              "restores, wait");
}

/* It may be gatepostd all the same: at a limit, or about to end. */
static void
report_no_answer(struct doctor *doctor, const struct error *error)
{
        doctor_fail(doctor, EX_UNAVAILABLE, "no answer as from gatepostd on %s: %s",
                    doctor->config->admin->text, error->text);
        doctor_socket_advise(doctor, doctor->config->admin, "admin");
}

/* An answer has another status than gatepostd's, or is no report of its state. */
static void
report_other_program(struct doctor *doctor, int status, const char *or_else)
{
        doctor_fail(doctor, EX_UNAVAILABLE, "another program than gatepostd answers on %s, with status %d%s",
                    doctor->config->admin->text, status, or_else);
        doctor_socket_advise(doctor, doctor->config->admin, "admin");
}

/*
 * Whether the daemon was started only just now, and is not ready only because something takes its time: then
 * a reason ends so, while a cause of trouble would follow.
 */
static int
is_starting(const struct doctor *doctor, const struct http_client_answer *answer)
{
        double age_s = doctor_seconds_since(doctor->status, "startTimeSeconds");

        return answer->status == 503 && age_s >= 0 && age_s < START_S &&
               (strstr(answer->body, " yet\n") != NULL || strstr(answer->body, " or recovering\n") != NULL);
}

/* Ask for a path, again while the daemon starts. Returns 0, or -1 with the reason. */
static int
get_settled(const struct doctor *doctor, const char *path, struct http_client_answer *answer,
            struct error *error)
{
        int result = doctor_daemon_get(doctor, path, answer, error);

        while (result == 0 && is_starting(doctor, answer) && !terminal_is_interrupted()) {
                free(answer->body);
                clock_sleep_ms(START_PAUSE_MS);
                result = doctor_daemon_get(doctor, path, answer, error);
        }
        return result;
}

/* Check /healthz or /readyz. Returns whether it is 200. */
static int
check_path(struct doctor *doctor, const char *path, const char *what)
{
        struct http_client_answer answer;
        struct error error;
        char reasons[600];

        doctor_begin(doctor, "daemon", "%s", path);
        if (get_settled(doctor, path, &answer, &error) != 0) {
                report_no_answer(doctor, &error);
                return 0;
        }
        join_lines(answer.body, reasons, sizeof(reasons));
        if ((answer.status == 200 || answer.status == 503) && doctor->reaches_kafka &&
            doctor_kafka_trouble(doctor) != NULL) {
                report_kafka(doctor); /* a receiver with a spool is ready all the same */
        } else if (answer.status == 200) {
                doctor_pass(doctor, "%s", what);
        } else if (answer.status == 503) {
                report_unready(doctor, what, reasons);
        } else {
                report_other_program(doctor, answer.status, "");
        }
        free(answer.body);
        return answer.status == 200;
}

int
doctor_daemon_is_same_path(const char *a, const char *b)
{
        char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
        int is_same = strcmp(real_a == NULL ? a : real_a, real_b == NULL ? b : real_b) == 0;

        free(real_a);
        free(real_b);
        return is_same;
}

/* What the gatepostd that answers has otherwise than the configuration; NULL: nothing. */
static const char *
differing_option(const struct config *config, const struct json_value *status)
{
        const struct json_value *roles = json_tree_get(status, "roles");
        const char *instance = json_tree_text(status, "instance");
        const char *topic =
            json_tree_text(json_tree_get(json_tree_get(status, "configuration"), "topics"), "deliveries");

        if (((config->roles & CONFIG_RECEIVER) && json_tree_get(roles, "receiver") == NULL) ||
            ((config->roles & CONFIG_ROUTER) && json_tree_get(roles, "router") == NULL))
                return "roles";
        if (topic == NULL || strcmp(topic, config->deliveries_topic) != 0)
                return "prefix";
        return instance == NULL || strcmp(instance, config->instance) != 0 ? "instance" : NULL;
}

/* A container may have the same file at another path, and another host's name. */
const char *
doctor_daemon_other(const struct doctor *doctor, const struct json_value *status)
{
        const char *file = json_tree_text(json_tree_get(status, "configuration"), "file");

        return file == NULL || doctor_daemon_is_same_path(file, doctor->file) ||
                       doctor_age_has_read(doctor, status, doctor->file) ||
                       differing_option(doctor->config, status) == NULL
                   ? NULL
                   : file;
}

int
doctor_daemon_has_two_files(const struct doctor *doctor, const struct json_value *status)
{
        const char *file = json_tree_text(json_tree_get(status, "configuration"), "file");
        struct stat its, ours;

        return file != NULL && stat(file, &its) == 0 && stat(doctor->file, &ours) == 0 &&
               (its.st_dev != ours.st_dev || its.st_ino != ours.st_ino);
}

char *
doctor_daemon_explain(struct doctor *doctor, const char *loaded)
{
        char *command = config_command(loaded);
        char *text =
            mem_printf("gatepostd has loaded %s, not %s: examine that one, %s doctor, or: %s", loaded,
                       doctor->file, command, doctor_restart_as(doctor, "restart gatepostd with this one"));

        free(command);
        return text;
}

char *
doctor_daemon_reload(struct doctor *doctor)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const char *file = json_tree_text(json_tree_get(status, "configuration"), "file");
        int is_other =
            doctor_daemon_other(doctor, status) != NULL || doctor_daemon_has_two_files(doctor, status);
        char *how = is_other ? doctor_daemon_explain(doctor, file) : mem_strdup("systemctl reload @UNIT@");

        json_tree_free(status);
        return how;
}

/* Whether another gatepostd has an address for deliveries of the file, by its report. */
static int
shares_listener(const struct config *config, const struct json_value *status)
{
        size_t i = 0, n = config->roles & CONFIG_RECEIVER ? config->n_listen : 0;

        while (i < n && !doctor_socket_is_listed(status, &config->listen[i]))
                i++;
        return i < n;
}

void
doctor_daemon_report_other(struct doctor *doctor, const char *seen, const struct json_value *status)
{
        const char *option = differing_option(doctor->config, status);
        const char *instance = json_tree_text(status, "instance");
        const char *file = json_tree_text(json_tree_get(status, "configuration"), "file");
        int is_instance = option != NULL && strcmp(option, "instance") == 0;
        const char *more = "";
        char what[700] = "";

        if (is_instance)
                (void)snprintf(what, sizeof(what), "its `instance` (%s rather than %s) is not that of ",
                               instance == NULL ? "none" : instance, doctor->config->instance);
        else if (option != NULL)
                (void)snprintf(what, sizeof(what), "its `%s` is not that of ", option);
        doctor_fail(doctor, EX_UNAVAILABLE,
                    "%sthe gatepostd of another configuration, %s, answers on %s: %s%s%s", seen,
                    file == NULL ? "" : file, doctor->config->admin->text, what, doctor->file,
                    option == NULL ? " is another file, and its gatepostd does not run"
                                   : ", whose gatepostd does not run");
        if (is_instance)
                more = "; if it is the same one, set `instance` in its file: the default is the name of the "
                       "host, and a container has one of its own";
        else if (option == NULL)
                more =
                    "; they have the same `instance` and `prefix`, too: two routers need an `instance` each, "
                    "and two installations a `prefix` each";
        doctor_remedy(doctor,
                      "give each its own `listen` in [admin]%s, and start the one that does not run%s",
                      shares_listener(doctor->config, status) ? ", and in [receiver]" : "", more);
}

/* Read the report of the daemon. Returns whether it is the one of this configuration. */
static int
check_status(struct doctor *doctor)
{
        struct http_client_answer answer;
        struct error error;

        doctor_begin(doctor, "daemon", "/status");
        if (doctor_daemon_get(doctor, "/status", &answer, &error) != 0) {
                report_no_answer(doctor, &error);
                return 0;
        }
        doctor->status = json_tree_parse(answer.body, answer.len, &error);
        free(answer.body);
        if (status_number(doctor->status, "startTimeSeconds") == 0)
                report_other_program(doctor, answer.status, ", or gatepostd before version 0.2.0");
        else if (doctor_daemon_other(doctor, doctor->status) != NULL)
                doctor_daemon_report_other(doctor, "", doctor->status);
        else
                return 1;
        return 0;
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
        if (!check_status(doctor))
                return;
        doctor_age_check(doctor);
        (void)check_path(doctor, "/readyz", "ready");
        doctor_spool_check(doctor);
        doctor_state_check(doctor);
        doctor_refusals_check(doctor);
        doctor_quarantine_check(doctor);
        doctor_losses_check(doctor);
}
