#include "cli/daemon_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/http_client.h"
#include "base/text.h"
#include "base/unit.h"
#include "cli/command.h"
#include "cli/receiver_url.h"
#include "config/endpoint.h"
#include "config/ini.h"
#include "config/options.h"

#define REPORT_MAX (4u << 20) /* bytes */

/* Return the value of `listen` in [admin], or its default. */
static const char *
find_value(const struct ini *ini)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];

                if (entry->name != NULL && strcmp(entry->section, "admin") == 0 &&
                    strcmp(entry->name, "listen") == 0)
                        return entry->value;
        }
        return options_find("admin", "listen")->fallback;
}

/* Read where the admin endpoint is. Returns 0, or an exit status after printing why it cannot be asked. */
static int
read_address(const char *file, const char *value, struct config_listen *address)
{
        struct error error;

        if (strcmp(value, "off") == 0)
                return command_fail(EX_CONFIG,
                                    "the admin endpoint is off; set listen in [admin] of %s, for example to "
                                    "127.0.0.1:9464, and restart gatepostd",
                                    file);
        if (endpoint_parse(value, address, &error) != 0)
                return command_fail(EX_CONFIG, "listen in [admin] of %s: %s", file, error.text);
        return 0;
}

/* Explain that nobody listens at the admin endpoint. Returns an exit status. */
static int
explain_absence(const char *file, const char *address, int reason)
{
        char *unit = unit_name(file), *quoted = text_for_shell(file);

        (void)command_fail(0, "gatepostd is not running: nobody listens at %s (%s)", address,
                           strerror(reason));
        command_advise("start it:             systemctl start %s", unit);
        command_advise("or in the foreground: gatepostd -c %s", quoted);
        command_advise("see why it stopped:   systemctl status %s; journalctl -u %s", unit, unit);
        free(quoted);
        free(unit);
        return EX_UNAVAILABLE;
}

/* Explain why there is no answer. Returns an exit status. */
static int
explain(const char *file, const char *address, const struct http_client_answer *answer,
        const struct error *error)
{
        if (answer->os_error == ECONNREFUSED || answer->os_error == ENOENT)
                return explain_absence(file, address, answer->os_error);
        if (answer->os_error == EACCES || answer->os_error == EPERM)
                return command_fail(EX_NOPERM,
                                    "you may not connect to %s; run this command as the user that gatepostd "
                                    "runs as, with sudo -u gatepost",
                                    address);
        if (answer->failure == HTTP_CLIENT_TIMED_OUT)
                return command_fail(
                    EX_UNAVAILABLE,
                    "gatepostd does not answer at %s within %d s; it is stopped or overloaded", address,
                    HTTP_CLIENT_TIMEOUT_MS / 1000);
        return command_fail(EX_UNAVAILABLE, "no answer from %s, which is listen in [admin] of %s: %s",
                            address, file, error->text);
}

/* Parse a report. Return NULL with the reason. */
static struct json_value *
parse(const struct http_client_answer *answer, struct error *error)
{
        struct json_value *report = NULL;

        if (answer->status == 404)
                (void)error_set(error, "not found; the server is an older gatepostd, or another program");
        else if (answer->is_cut)
                (void)error_set(error, "the answer is longer than %u bytes", REPORT_MAX);
        else if ((report = json_tree_parse(answer->body, answer->len, error)) == NULL)
                (void)error_prefix(error, "the server is not gatepostd");
        if (report == NULL || (answer->status == 200 && json_tree_get(report, "startTimeSeconds") != NULL))
                return report;
        json_tree_free(report);
        (void)error_set(error, "the server is not gatepostd");
        return NULL;
}

/* Ask at an address. Returns 0, or an exit status after printing why there is no report. */
static int
ask(const char *file, const struct config_listen *address, struct json_value **status)
{
        struct http_client_answer answer;
        struct receiver_url endpoint;
        struct error error;
        int result;

        if (receiver_url_own(address, NULL, "/status", &endpoint) != 0)
                return command_fail(EX_CONFIG,
                                    "listen in [admin] of %s is %s, a port that only gatepostd knows; choose "
                                    "a port, for example 9464, and restart gatepostd",
                                    file, address->text);
        result = http_client_call(&(struct http_client_request){.method = "GET",
                                                                .url = endpoint.url,
                                                                .socket_path = endpoint.socket_path,
                                                                .timeout_ms = HTTP_CLIENT_TIMEOUT_MS,
                                                                .max_answer = REPORT_MAX},
                                  &answer, &error);
        if (result != 0)
                result = explain(file, address->text, &answer, &error);
        else if ((*status = parse(&answer, &error)) == NULL)
                result = command_fail(EX_UNAVAILABLE, "%s: %s", endpoint.url, error.text);
        free(answer.body);
        free(endpoint.url);
        return result;
}

int
daemon_status_read(const char *file, struct json_value **status)
{
        struct findings findings = {0};
        struct config_listen address;
        struct ini ini = {0};
        int result;

        if (ini_read_file(file, &ini, &findings) != 0) {
                result =
                    command_fail(EX_CONFIG, "%s: %s", file, findings_first(&findings, FINDING_ERROR)->text);
        } else if ((result = read_address(file, find_value(&ini), &address)) == 0) {
                result = ask(file, &address, status);
                free(address.text);
        }
        findings_clear(&findings);
        ini_clear(&ini);
        return result;
}
