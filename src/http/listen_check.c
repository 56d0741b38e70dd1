#include "http/listen_check.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/endpoint.h"

/* Return whether this process lacks the privilege to bind an address; other failures may pass. */
static int
is_denied(const struct config_listen *listen)
{
        const int on = 1;
        int fd = socket(listen->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), denied;

        if (fd < 0)
                return 0;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        denied =
            bind(fd, (const struct sockaddr *)&listen->address, listen->address_len) != 0 && errno == EACCES;
        (void)close(fd);
        return denied;
}

/* Check the path of a socket. Return 0, or an errno with the reason. */
static int
check_path(const char *path, struct error *error)
{
        char *copy = mem_strdup(path);
        const char *directory = dirname(copy);
        struct stat st;
        int reason = access(directory, W_OK | X_OK) == 0 ? 0 : errno;

        if (reason != 0)
                (void)error_set(error, "cannot make a socket in %s: %s", directory, strerror(reason));
        else if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
                reason = EEXIST;
                (void)error_set(error, "%s exists and is not a socket", path);
        }
        free(copy);
        return reason;
}

static int
check_address(const struct config_listen *listen, struct error *error)
{
        if (listen->address.ss_family == AF_UNIX)
                return check_path(endpoint_path(listen), error);
        if (!is_denied(listen))
                return 0;
        (void)error_set(error, "the port needs a privilege that gatepostd does not have");
        return EACCES;
}

/* Systemd and others make directories in /run when they start a service. */
static int
comes_with_unit(const struct config_listen *listen, int reason)
{
        return reason == ENOENT && strncmp(listen->text, "unix:/run/", strlen("unix:/run/")) == 0;
}

static void
check_and_report(const struct config *config, const struct config_listen *listen, struct findings *findings)
{
        struct finding *finding;
        struct error error;
        int reason = check_address(listen, &error);

        if (reason == 0 || comes_with_unit(listen, reason))
                return;
        finding = findings_add(findings, reason == EACCES ? FINDING_WARNING : FINDING_ERROR, config->file,
                               "listen: %.100s: %s", listen->text, error.text);
        finding->line = config_line_of_value(config, listen->text);
        if (reason == EACCES)
                finding_set_remedy(finding, "let a socket unit open it: systemctl edit gatepostd%s.socket",
                                   listen == config->admin ? "-admin" : "");
}

void
listen_check(const struct config *config, struct findings *findings)
{
        for (size_t i = 0; (config->roles & CONFIG_RECEIVER) && i < config->n_listen; i++)
                check_and_report(config, &config->listen[i], findings);
        if (config->admin != NULL)
                check_and_report(config, config->admin, findings);
}

static int
check_start(const struct config_listen *listen, const char *section, struct error *error)
{
        return check_address(listen, error) == 0
                   ? 0
                   : error_prefix(error, "[%s] listen = %s", section, listen->text);
}

int
listen_check_start(const struct config *config, const struct activation *activation, struct error *error)
{
        for (size_t i = 0;
             (config->roles & CONFIG_RECEIVER) && activation->n_receivers == 0 && i < config->n_listen; i++) {
                if (check_start(&config->listen[i], "receiver", error) != 0)
                        return -1;
        }
        return config->admin == NULL || activation->admin >= 0 ? 0
                                                               : check_start(config->admin, "admin", error);
}
