#include "cli/daemon_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/own_url.h"
#include "config/endpoint.h"

#define REPORT_MAX (4u << 20) /* bytes */

/* Find the admin endpoint. Returns 0, or an exit status after printing why it cannot be asked. */
static int
find_endpoint(const struct config *config, struct own_url *endpoint)
{
        if (config->admin == NULL)
                return command_fail(EX_CONFIG,
                                    "the admin endpoint is off, so gatepostd cannot be asked; set listen in "
                                    "[admin] of %s, for example to 127.0.0.1:9464, and restart gatepostd",
                                    config->file);
        if (own_url_make(config->admin, NULL, "/status", endpoint) != 0)
                return command_fail(EX_CONFIG,
                                    "listen in [admin] of %s is %s, a port that only gatepostd knows; choose "
                                    "a port, for example 9464, and restart gatepostd",
                                    config->file, config->admin->text);
        return 0;
}

/* Explain that nobody listens at the admin endpoint. Returns an exit status. */
static int
explain_absence(const struct config *config, int reason)
{
        char *unit = command_unit(config->file), *file = text_for_shell(config->file);

        (void)command_fail(0,
                           "gatepostd is not running%s: nobody listens at %s, which is listen in [admin] "
                           "of %s (%s)",
                           endpoint_may_be_hidden(config->admin, config)
                               ? ", or has a /tmp of its own, by PrivateTmp= of its unit"
                               : "",
                           config->admin->text, config->file, strerror(reason));
        command_advise("start it:             systemctl start %s", unit);
        command_advise("or in the foreground: gatepostd -c %s", file);
        command_advise("see why it stopped:   systemctl status %s; journalctl -u %s", unit, unit);
        if (endpoint_may_be_hidden(config->admin, config))
                command_advise("if it runs:           name a path in /run/gatepost instead, and restart it");
        free(file);
        free(unit);
        return EX_UNAVAILABLE;
}

/* Explain why there is no answer. Returns an exit status. */
static int
explain(const struct config *config, const struct http_client_answer *answer, const struct error *error)
{
        const char *address = config->admin->text;

        if (answer->os_error == ECONNREFUSED || answer->os_error == ENOENT)
                return explain_absence(config, answer->os_error);
        if (answer->os_error == EACCES || answer->os_error == EPERM)
                return command_fail(EX_NOPERM,
                                    "you may not connect to %s, which is listen in [admin] of %s; run this "
                                    "command as the user that gatepostd runs as, with sudo -u gatepost",
                                    address, config->file);
        if (answer->failure == HTTP_CLIENT_TIMED_OUT)
                return command_fail(EX_UNAVAILABLE,
                                    "gatepostd does not answer at %s within %d s, as if it were stopped or "
                                    "overloaded; see its log by journalctl",
                                    address, HTTP_CLIENT_TIMEOUT_MS / 1000);
        return command_fail(EX_UNAVAILABLE, "no answer from %s, which is listen in [admin] of %s: %s",
                            address, config->file, error->text);
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

int
daemon_status_read(const struct config *config, struct json_value **report)
{
        struct http_client_answer answer;
        struct own_url endpoint;
        struct error error;
        int status = find_endpoint(config, &endpoint), result;

        if (status != 0)
                return status;
        result = http_client_call(&(struct http_client_request){.method = "GET",
                                                                .url = endpoint.url,
                                                                .socket_path = endpoint.socket_path,
                                                                .timeout_ms = HTTP_CLIENT_TIMEOUT_MS,
                                                                .max_answer = REPORT_MAX},
                                  &answer, &error);
        if (result != 0) {
                status = explain(config, &answer, &error);
        } else if ((*report = parse(&answer, &error)) == NULL) {
                status = command_fail(EX_UNAVAILABLE, "%s: %s", endpoint.url, error.text);
        }
        free(answer.body);
        free(endpoint.url);
        return status;
}
